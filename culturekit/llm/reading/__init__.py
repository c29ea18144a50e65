"""From the text of a reply to a value of its type, or to a reason why not."""
