#!/usr/bin/env bash
# Runs once, when the database's volume is empty: the two roles, the database and what only a superuser may create in it.
# The application gets the lesser role; its rights on tables are declared by `manage.py migrate`, which runs as the owner.
set -euo pipefail
psql --no-psqlrc -v ON_ERROR_STOP=1 --username "$POSTGRES_USER" --dbname postgres <<'SQL'
\getenv owner_password OWNER_PASSWORD
\getenv app_password APP_PASSWORD
CREATE ROLE palimpsest_owner LOGIN NOSUPERUSER NOCREATEROLE NOCREATEDB PASSWORD :'owner_password';
CREATE ROLE palimpsest_app LOGIN NOSUPERUSER NOCREATEROLE NOCREATEDB PASSWORD :'app_password';
CREATE DATABASE palimpsest OWNER palimpsest_owner;
\connect palimpsest
CREATE EXTENSION vector;
CREATE EXTENSION btree_gist;
CREATE EXTENSION pg_trgm;
SQL
