"""The composition root: settings, addresses, queue, embedded servers. Imports both apps; nothing imports it."""
