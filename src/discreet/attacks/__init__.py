"""What real attackers reach: links, membership and attributes, from what a release lets them see."""
