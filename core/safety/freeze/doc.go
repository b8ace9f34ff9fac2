// Package freeze decides in which Clusters no Machine may be replaced: those whose target API server does not answer, or has answered
// again only a moment ago. What the core knows of their Nodes is old. Deletions that have begun continue, and so do creations.
// See README.md.
package freeze
