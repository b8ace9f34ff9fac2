package instance

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "millwright.dev/providers/azure/api/v1alpha1"
	"millwright.dev/providers/driver"
)

// Tags of ownership, on each machine, disk, interface and public address from its launch on. Keys have no slash in Azure. The API refuses
// user tags of these names.
const (
	// TagOwnerUID holds the UID that the AzureMachine had at its first launch. Together with TagMachine it is the mark without which nothing
	// is deleted.
	TagOwnerUID = "infrastructure.millwright.dev_owner-uid"
	// TagMachine holds driver.OwnerName of the AzureMachine: namespace/name.
	TagMachine = "infrastructure.millwright.dev_machine"
	// TagCluster holds namespace/name of the Cluster.
	TagCluster = "infrastructure.millwright.dev_cluster"
	// TagToken holds the token of the launch.
	TagToken = "infrastructure.millwright.dev_token"
	// TagLineage holds the text of the driver.Lineage: by which installation the machine was launched, or last taken over.
	TagLineage = "infrastructure.millwright.dev_lineage"
	// tagClusterOwned followed by the name of the cluster is what Cluster API's tools mark the machines of a cluster by.
	tagClusterOwned = "kubernetes.io_cluster_"
)

// maxTag is how long the key of a tag is at most.
const maxTag = 512

// ownershipTags returns the tags of all resources of a launch: the user's, and over them the owner's.
func ownershipTags(launch driver.Launch[*infrav1.AzureMachine]) map[string]*string {
	m := launch.Object
	tags := make(map[string]*string, len(m.Spec.Tags)+6)
	set := func(key, value string) {
		if value != "" && len(key) <= maxTag {
			tags[key] = &value
		}
	}
	for key, value := range m.Spec.Tags {
		text := string(value)
		tags[key] = &text
	}
	set(TagOwnerUID, string(launch.OwnerUID))
	set(TagMachine, driver.OwnerName(client.ObjectKeyFromObject(m)))
	cluster := m.Namespace + "/" + launch.ClusterName
	set(TagCluster, cluster[:min(len(cluster), 256)])
	set(TagToken, launch.Token)
	set(TagLineage, launch.Lineage)
	set(tagClusterOwned+launch.ClusterName, "owned")
	return tags
}

// tagOf reads a tag. Keys are not case-sensitive.
func tagOf(tags map[string]*string, key string) string {
	for k, v := range tags {
		if v != nil && strings.EqualFold(k, key) {
			return *v
		}
	}
	return ""
}

// marked is an instance with nothing but its mark.
func marked(tags map[string]*string) driver.Instance {
	return driver.Instance{
		OwnerUID: types.UID(tagOf(tags, TagOwnerUID)), Owner: tagOf(tags, TagMachine), Lineage: tagOf(tags, TagLineage), Token: tagOf(tags,
			TagToken),
	}
}

// Mark describes which tags a machine must carry to be the handle's.
func (d *Driver) Mark(h driver.Handle) string {
	return fmt.Sprintf("tags %s=%s and %s=%s (its network interfaces and OS disk are then deleted with it, data disks and public IP "+
		"addresses only if their deleteOption is Delete)", TagOwnerUID, h.OwnerUID, TagMachine, h.Owner)
}
