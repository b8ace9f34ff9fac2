package target

import (
	rbacv1 "k8s.io/api/rbac/v1"
)

// nodeBootstrapper is the ClusterRole of Kubernetes that may create, get, list and watch certificate
// signing requests.
const nodeBootstrapper = "system:node-bootstrapper"

// Role may get this machine's Secret and nothing else.
func (n Names) Role(config string) *rbacv1.Role {
	return &rbacv1.Role{
		ObjectMeta: n.meta(n.Object(), config),
		Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{""}, Resources: []string{"secrets"},
			ResourceNames: []string{n.Object()}, Verbs: []string{"get"},
		}},
	}
}

// RoleBinding gives the Role to the holder of the download token or, when the name of the machine's
// Node is given, to that Node instead. The name must come from Machine.status.nodeRef, which the core
// sets when provider IDs are equal, and never from labels of a Node, which the Node itself writes.
func (n Names) RoleBinding(config, node string) *rbacv1.RoleBinding {
	subject := rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: n.DownloadGroup()}
	if node != "" {
		subject = rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "system:node:" + node}
	}
	return &rbacv1.RoleBinding{
		ObjectMeta: n.meta(n.Object(), config),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: n.Object()},
		Subjects:   []rbacv1.Subject{subject},
	}
}

// ClusterRoleBinding lets the holder of the join token ask for a client certificate. Approval is
// another matter.
func (n Names) ClusterRoleBinding(config string) *rbacv1.ClusterRoleBinding {
	meta := n.meta(n.Object(), config)
	meta.Namespace = ""
	return &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: nodeBootstrapper},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: n.JoinGroup()}},
	}
}
