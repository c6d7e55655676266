# The application for servers of your own (docker-compose.yml shows it whole): run-time packages only, no embedded servers.
FROM python:3.13-slim AS packages
WORKDIR /build
COPY pyproject.toml requirements.lock ./
COPY scripts/runtime_requirements.py scripts/
RUN python scripts/runtime_requirements.py > run.txt \
 && python -m venv /venv \
 && /venv/bin/pip install --no-cache-dir --require-hashes -r run.txt

FROM python:3.13-slim
RUN useradd --system --uid 10001 --no-create-home --shell /usr/sbin/nologin palimpsest
COPY --from=packages /venv /venv
WORKDIR /app
COPY manage.py ./
COPY memory_site memory_site
COPY observations observations
COPY consolidation consolidation
COPY templates templates
ENV PATH=/venv/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 DJANGO_SETTINGS_MODULE=memory_site.settings
USER 10001
EXPOSE 8000
CMD ["gunicorn", "memory_site.wsgi", "--bind", "0.0.0.0:8000", "--worker-class", "gthread", "--workers", "2", "--threads", "8", "--no-control-socket", "--worker-tmp-dir", "/dev/shm"]
