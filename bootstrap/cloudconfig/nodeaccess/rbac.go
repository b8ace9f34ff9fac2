package nodeaccess

import (
	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
)

// Role may get this machine's Secret, with reports write to its Lease, and nothing else.
func (n Names) Role(namespace, config string, reports bool) *rbacv1.Role {
	role := &rbacv1.Role{
		ObjectMeta: n.meta(namespace, n.Object(), config),
		Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{""}, Resources: []string{"secrets"},
			ResourceNames: []string{n.Object()}, Verbs: []string{"get"},
		}},
	}
	if reports {
		role.Rules = append(role.Rules, rbacv1.PolicyRule{
			APIGroups: []string{coordinationv1.GroupName}, Resources: []string{"leases"},
			ResourceNames: []string{n.Object()}, Verbs: []string{"patch"},
		})
	}
	return role
}

// RoleBinding gives the Role to the holder of the download token or, when the name of the machine's
// Node is given, to that Node instead. The name must be the one that the machine was given, which its
// certificate binds, and never one that the provider ID or labels of a Node lead to, which the Node itself writes.
func (n Names) RoleBinding(namespace, config, node string) *rbacv1.RoleBinding {
	subject := rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: n.DownloadGroup()}
	if node != "" {
		subject = rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "system:node:" + node}
	}
	return &rbacv1.RoleBinding{
		ObjectMeta: n.meta(namespace, n.Object(), config),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: n.Object()},
		Subjects:   []rbacv1.Subject{subject},
	}
}
