"""What the stream decoders share."""
