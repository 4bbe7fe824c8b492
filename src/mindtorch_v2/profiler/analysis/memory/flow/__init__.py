"""torch's memory profile: which op read, wrote, made and freed which memory, and from that what the memory was for."""
