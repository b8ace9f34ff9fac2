package remote

import (
	appsv1 "k8s.io/api/apps/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// clusterScoped are the kinds among those used in target clusters that have no namespace.
var clusterScoped = map[schema.GroupVersionKind]bool{
	corev1.SchemeGroupVersion.WithKind("Node"):                true,
	corev1.SchemeGroupVersion.WithKind("Namespace"):           true,
	corev1.SchemeGroupVersion.WithKind("PersistentVolume"):    true,
	storagev1.SchemeGroupVersion.WithKind("VolumeAttachment"): true,
	storagev1.SchemeGroupVersion.WithKind("StorageClass"):     true,

	certificatesv1.SchemeGroupVersion.WithKind("CertificateSigningRequest"): true,
	rbacv1.SchemeGroupVersion.WithKind("ClusterRole"):                       true,
	rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding"):                true,
}

// builtIn maps the kinds of the groups that are used in target clusters, without asking the API server.
func builtIn(scheme *runtime.Scheme) meta.RESTMapper {
	versions := []schema.GroupVersion{
		corev1.SchemeGroupVersion, appsv1.SchemeGroupVersion, storagev1.SchemeGroupVersion,
		certificatesv1.SchemeGroupVersion, coordinationv1.SchemeGroupVersion, rbacv1.SchemeGroupVersion,
	}
	mapper := meta.NewDefaultRESTMapper(versions)
	for _, version := range versions {
		for kind := range scheme.KnownTypes(version) {
			gvk := version.WithKind(kind)
			scope := meta.RESTScopeNamespace
			if clusterScoped[gvk] {
				scope = meta.RESTScopeRoot
			}
			mapper.Add(gvk, scope)
		}
	}
	return mapper
}
