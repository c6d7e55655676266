"""What the background makes of turns, and what it holds back."""
