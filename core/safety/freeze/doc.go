// Package freeze decides when nothing may be concluded about Machines, and so nothing replaced: while an API server does not answer,
// for a while after it does again, after a jump of the clock, after a time in which no core was at work, and when the management
// cluster looks as if it was restored from a backup. Deletions that have begun continue, and so do creations. See README.md.
package freeze
