"""From a Wikidata dump to a graph, and from the graph to cultural artifacts with evidence."""
