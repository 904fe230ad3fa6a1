"""What happens by itself: looking through a memory for what repeats, contradicts and fades."""
