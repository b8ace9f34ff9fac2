// Package node holds what runs on a machine and renders what is sent there: the user data that a
// cloud gives to a new machine, and the bundle that the machine downloads afterwards. Everything in
// it is a pure function of its arguments.
package node
