// Package health judges whether a Machine is unhealthy, why and since when. It is pure: what is known comes in as Facts, and what
// follows goes out as an Assessment. Whether a Machine may be replaced, and replacing it, are for others. See README.md.
package health
