"""A neighbourhood in the formats of other tools, and back: networkx for graphs, rdflib for triples."""
