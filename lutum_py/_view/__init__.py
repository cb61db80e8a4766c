"""What is sent of a long conversation: cuts of a transcript that stays whole."""
