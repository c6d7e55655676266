"""How well it works: probe suites, how often each rule is wrong, and what the language model was asked and cost."""
