package instance

import (
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "millwright.dev/providers/aws/api/v1alpha1"
	"millwright.dev/providers/driver"
)

// Tags of ownership, on each instance, volume and network interface from its launch on. The API
// refuses user tags of these names.
const (
	// TagOwnerUID holds the UID that the AWSMachine had at its first launch. Lists are made by it. Together with TagMachine
	// it is the mark without which nothing is terminated.
	TagOwnerUID = "infrastructure.millwright.dev/owner-uid"
	// TagCluster holds namespace/name of the Cluster.
	TagCluster = "infrastructure.millwright.dev/cluster"
	// TagMachine holds driver.OwnerName of the AWSMachine: namespace/name, shortened if EC2 does not take so many characters.
	TagMachine = "infrastructure.millwright.dev/machine"
	// TagLineage holds the text of the driver.Lineage: by which installation the instance was launched, or last taken over.
	TagLineage = "infrastructure.millwright.dev/lineage"
	// tagClusterOwned followed by the name of the cluster is what the AWS cloud-controller-manager and
	// the AWS load balancer controller find the instances of a cluster by.
	tagClusterOwned = "kubernetes.io/cluster/"
	tagName         = "Name"
	tagMachineName  = "MachineName"
)

// taggedAtLaunch are the resources that every launch creates.
var taggedAtLaunch = []types.ResourceType{
	types.ResourceTypeInstance, types.ResourceTypeVolume, types.ResourceTypeNetworkInterface,
}

// ownershipTags returns the tags of all resources of a launch: the user's, and over them the owner's.
func ownershipTags(launch driver.Launch[*infrav1.AWSMachine]) map[string]string {
	m := launch.Object
	tags := make(map[string]string, len(m.Spec.Tags)+7)
	for key, value := range m.Spec.Tags {
		tags[key] = string(value)
	}
	tags[TagOwnerUID] = string(launch.OwnerUID)
	tags[TagCluster] = m.Namespace + "/" + launch.ClusterName
	tags[TagMachine] = driver.OwnerName(client.ObjectKeyFromObject(m))
	if launch.Lineage != "" {
		tags[TagLineage] = launch.Lineage
	}
	tags[tagClusterOwned+launch.ClusterName] = "owned"
	tags[tagName] = m.Name
	tags[tagMachineName] = tags[TagMachine]
	return tags
}

// tagSpecifications puts the same tags on everything that the launch creates, which includes the request of a spot instance: EC2
// refuses its type for others. They are sorted, since the same token must always come with the same request.
func tagSpecifications(tags map[string]string, spot bool) []types.TagSpecification {
	list := make([]types.Tag, 0, len(tags))
	for key, value := range tags {
		list = append(list, types.Tag{Key: aws.String(key), Value: aws.String(value)})
	}
	slices.SortFunc(list, func(a, b types.Tag) int { return strings.Compare(*a.Key, *b.Key) })
	resources := taggedAtLaunch
	if spot {
		resources = append(slices.Clone(resources), types.ResourceTypeSpotInstancesRequest)
	}
	specs := make([]types.TagSpecification, 0, len(resources))
	for _, resource := range resources {
		specs = append(specs, types.TagSpecification{ResourceType: resource, Tags: list})
	}
	return specs
}

// Mark describes which tags an instance must carry to be the handle's.
func (d *Driver) Mark(h driver.Handle) string {
	return fmt.Sprintf("tags %s=%s and %s=%s", TagOwnerUID, h.OwnerUID, TagMachine, h.Owner)
}

func tagValue(tags []types.Tag, key string) string {
	for _, t := range tags {
		if aws.ToString(t.Key) == key {
			return aws.ToString(t.Value)
		}
	}
	return ""
}
