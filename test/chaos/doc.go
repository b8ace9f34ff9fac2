// Package chaos runs the core and the AWS provider, as they are built, against a real API server and a simulated EC2
// while both processes are killed, everything that they talk to fails at random, and objects are changed and
// deleted; then it checks that everything is as it should be. What happens follows from a seed.
package chaos
