// Package nodeaccess makes, compares and removes what one machine has in its target cluster: its Secret,
// its two bootstrap tokens, and the roles and bindings with what each of them may do.
//
//	who                                        may
//	download token, group …:<hash>             get the Secret of this node           Role + RoleBinding
//	join token, group …:request                ask for a client certificate          config/target-cluster, once for all
//	Node, once it is linked to its Machine     get the Secret of this node           RoleBinding
//
// Nothing is ever bound to system:bootstrappers, the group that every bootstrap token is in.
package nodeaccess
