// Package clusterctl has the tests with Cluster API's own clusterctl, built from its module: from a release to machines,
// to another management cluster and back, to the next release, and away. See README.md.
package clusterctl
