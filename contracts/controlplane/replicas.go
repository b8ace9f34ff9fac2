package controlplane

import (
	"math"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/field"
	"millwright.dev/contracts/version"
)

var (
	specReplicas        = field.Path{"spec", "replicas"}
	statusReplicas      = field.Path{"status", "replicas"}
	readyReplicas       = field.Path{"status", "readyReplicas"}
	availableReplicas   = field.Path{"status", "availableReplicas"}
	upToDateReplicas    = field.Path{"status", "upToDateReplicas"}
	unavailableReplicas = field.Path{"status", "unavailableReplicas"}
	updatedReplicas     = field.Path{"status", "updatedReplicas"}
)

// Replicas returns how many instances the control plane has, as its provider reports them; nil where it reports no counters
// at all. A number that it does not report is nil (CP-007). In the older contract a provider reports how many of the desired ones
// are unavailable.
func (a Accessor) Replicas(obj *unstructured.Unstructured) (*clusterv1.ClusterControlPlaneStatus, error) {
	upToDate := upToDateReplicas
	if a.contract == version.V1Beta1 {
		upToDate = updatedReplicas
	}
	counted := &clusterv1.ClusterControlPlaneStatus{}
	for _, read := range []struct {
		path field.Path
		into **int32
	}{
		{specReplicas, &counted.DesiredReplicas},
		{statusReplicas, &counted.Replicas},
		{readyReplicas, &counted.ReadyReplicas},
		{availableReplicas, &counted.AvailableReplicas},
		{upToDate, &counted.UpToDateReplicas},
	} {
		value, err := number(obj, read.path)
		if err != nil {
			return nil, err
		}
		*read.into = value
	}
	if a.contract == version.V1Beta1 {
		missing, err := number(obj, unavailableReplicas)
		if err != nil {
			return nil, err
		}
		if counted.AvailableReplicas = nil; missing != nil && counted.DesiredReplicas != nil {
			counted.AvailableReplicas = ptr.To(max(*counted.DesiredReplicas-*missing, 0))
		}
	}
	versions, err := countedVersions(obj)
	if err != nil {
		return nil, err
	}
	counted.Versions = versions
	if counted.DesiredReplicas == nil && counted.Replicas == nil && counted.ReadyReplicas == nil && len(versions) == 0 {
		return nil, nil // Counters are optional.
	}
	return counted, nil
}

// number is nil where the field is absent. A number that does not fit is truncated: it is only displayed.
func number(obj *unstructured.Unstructured, path field.Path) (*int32, error) {
	last := len(path) - 1
	if parent, err := path[:last].Object(obj); err != nil || parent[path[last]] == nil {
		return nil, nil //nolint:nilerr // Other readers report a parent that is not an object.
	}
	value, err := path.Integer(obj)
	if err != nil {
		return nil, err
	}
	return ptr.To(int32(min(max(value, 0), math.MaxInt32))), nil
}

func countedVersions(obj *unstructured.Unstructured) ([]clusterv1.StatusVersion, error) {
	entries, err := statusVersions.List(obj)
	if err != nil {
		return nil, err
	}
	var versions []clusterv1.StatusVersion
	for i, entry := range entries {
		name, err := statusVersions.TextIn(obj, i, entry, "version")
		if err != nil {
			return nil, err
		}
		count, err := statusVersions.IntegerIn(obj, i, entry, "replicas")
		if err != nil {
			return nil, err
		}
		if name != "" && count > 0 {
			versions = append(versions, clusterv1.StatusVersion{Version: name, Replicas: int32(min(count, math.MaxInt32))})
		}
	}
	return versions, nil
}
