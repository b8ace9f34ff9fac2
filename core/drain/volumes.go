package drain

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Volume is a volume that is attached to the Node.
type Volume struct {
	// Claim is namespace/name of the PersistentVolumeClaim that it is bound to, empty when there is none.
	Claim string
	// PersistentVolume is the name of the PersistentVolume, empty when there is none.
	PersistentVolume string
	// Attachment is the entry of the Node's status.volumesAttached or the name of the VolumeAttachment that
	// reports it, for a volume that is no PersistentVolume.
	Attachment string
}

// String names the volume by what people know it by.
func (v Volume) String() string {
	switch {
	case v.Claim != "":
		return "PersistentVolumeClaim " + v.Claim
	case v.PersistentVolume != "":
		return "PersistentVolume " + v.PersistentVolume
	default:
		return "volume " + v.Attachment
	}
}

// nodeVolumes are the volumes that are attached to a Node, by its status or by a VolumeAttachment.
type nodeVolumes struct {
	// known is false while what they rest on has not been read.
	known bool
	// attached are those that are PersistentVolumes, by their name.
	attached map[string]Volume
	// others are those that are not.
	others []Volume
	// byClaim finds the attached PersistentVolume of a claim.
	byClaim map[string]string
}

// gatherVolumes combines the Node, the VolumeAttachments and the PersistentVolumes. An attachment
// without PersistentVolume is counted by its own name.
func gatherVolumes(node *corev1.Node, attachments *collection[attachment], volumes *collection[persistentVolume]) *nodeVolumes {
	result := &nodeVolumes{attached: map[string]Volume{}, byClaim: map[string]string{}}
	ofThisNode := attachments.find(ofNode(node.Name))
	result.known = attachments.known() && (len(ofThisNode)+len(node.Status.VolumesAttached) == 0 || volumes.known())
	if !result.known {
		return result
	}
	for _, a := range ofThisNode {
		switch {
		case !a.Status.Attached:
		case volumeOf(a) == "":
			result.others = append(result.others, Volume{Attachment: a.Name})
		default:
			result.add(volumeOf(a), volumes)
		}
	}
	for _, reported := range node.Status.VolumesAttached {
		found := volumes.find(string(reported.Name))
		if len(found) == 0 {
			result.others = append(result.others, Volume{Attachment: string(reported.Name)})
			continue
		}
		result.add(found[0].Name, volumes)
	}
	return result
}

func (v *nodeVolumes) add(name string, volumes *collection[persistentVolume]) {
	volume := Volume{PersistentVolume: name}
	if pv, found := volumes.get(name); found {
		volume.Claim = claimOf(pv)
	}
	v.attached[name] = volume
	if volume.Claim != "" {
		v.byClaim[volume.Claim] = name
	}
}

// of returns the attached PersistentVolumes that a pod uses. A pod that is finished uses none.
func (v *nodeVolumes) of(pod *Pod) []string {
	if pod.Finished {
		return nil
	}
	var names []string
	for _, claim := range pod.Claims {
		if name, found := v.byClaim[pod.Key.Namespace+"/"+claim]; found && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// own returns for each pod the attached PersistentVolumes that it alone uses. Those that several pods of the Node
// use stay attached until the last of them is gone, so that nothing is to be gained by waiting for them.
func (v *nodeVolumes) own(pods map[types.UID]*Pod) map[types.UID][]string {
	users := map[string]int{}
	for _, pod := range pods {
		for _, name := range v.of(pod) {
			users[name]++
		}
	}
	own := map[types.UID][]string{}
	for uid, pod := range pods {
		for _, name := range v.of(pod) {
			if users[name] == 1 {
				own[uid] = append(own[uid], name)
			}
		}
	}
	return own
}

// without returns the volumes that remain when those are left out that pods use which stay on the Node.
func (v *nodeVolumes) without(staying []*Pod) []Volume {
	kept := map[string]bool{}
	for _, pod := range staying {
		for _, name := range v.of(pod) {
			kept[name] = true
		}
	}
	remaining := slices.Clone(v.others)
	for name, volume := range v.attached {
		if !kept[name] {
			remaining = append(remaining, volume)
		}
	}
	slices.SortFunc(remaining, func(a, b Volume) int { return cmp.Compare(a.String(), b.String()) })
	return remaining
}
