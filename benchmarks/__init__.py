"""What the README's figures come from: each module measures one thing and prints it; `make bench` runs them all."""
