"""What commands read: query texts, destinations, role files."""
