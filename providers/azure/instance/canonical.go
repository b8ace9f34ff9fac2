package instance

import (
	"encoding/base64"
	"regexp"
	"slices"
	"strings"

	infrav1 "millwright.dev/providers/azure/api/v1alpha1"
)

// Users paste identifiers as az, the portal, Terraform, other providers or a Node print them. Azure compares them without regard to case;
// canonical has each in one form, so that comparisons here do the same.

// canonical returns the spec with each identifier in the form that Azure Resource Manager documents.
func canonical(spec *infrav1.AzureMachineSpec) *infrav1.AzureMachineSpec {
	s := spec.DeepCopy()
	s.SubscriptionID, s.Location = subscriptionOf(s.SubscriptionID), locationOf(s.Location)
	s.ResourceGroup, s.Zones = groupName(s.ResourceGroup), each(s.Zones, zoneOf)
	s.VMSize, s.FallbackVMSizes = sizeName(s.VMSize), each(s.FallbackVMSizes, sizeName)
	s.UserAssignedIdentities = each(s.UserAssignedIdentities, resourceID)
	ids := []*string{&s.SubnetID, &s.NetworkSecurityGroupID, &s.CapacityReservationGroupID}
	for i := range s.ExtraInterfaces {
		ids = append(ids, &s.ExtraInterfaces[i].SubnetID, &s.ExtraInterfaces[i].NetworkSecurityGroupID)
	}
	if s.OSDisk != nil {
		ids = append(ids, &s.OSDisk.DiskEncryptionSetID)
	}
	for i := range s.DataDisks {
		ids = append(ids, &s.DataDisks[i].DiskEncryptionSetID)
	}
	if p := s.Placement; p != nil {
		ids = append(ids, &p.AvailabilitySetID, &p.ScaleSetID, &p.ProximityPlacementGroupID, &p.HostGroupID)
	}
	for _, id := range ids {
		*id = resourceID(*id)
	}
	s.Image, s.SSHPublicKey = canonicalImage(s.Image), sshKeyOf(s.SSHPublicKey)
	return s
}

// each applies f to every element and then removes duplicates.
func each(list []string, f func(string) string) []string {
	var out []string
	for _, text := range list {
		text = f(text)
		if !slices.ContainsFunc(out, func(other string) bool { return strings.EqualFold(other, text) }) {
			out = append(out, text)
		}
	}
	return out
}

// subscriptionOf reads a GUID, also in the form of a resource ID.
func subscriptionOf(id string) string { return strings.ToLower(nameOf(strings.Trim(id, "/"))) }

// groupName reads the name of a resource group, also in its resource ID.
func groupName(group string) string { return nameOf(strings.Trim(group, "/")) }

// locationOf reads the name of a region: westeurope, West Europe or (Europe) West Europe.
func locationOf(location string) string {
	if _, after, found := strings.Cut(location, ")"); found {
		location = after
	}
	return strings.ToLower(strings.ReplaceAll(location, " ", ""))
}

// zoneOf reads a zone: 1, or westeurope-1 as Nodes have it.
func zoneOf(zone string) string { return zone[strings.LastIndexByte(zone, '-')+1:] }

var (
	// sizeFamily is what follows Standard_ in the name of a size.
	sizeFamily = regexp.MustCompile(`^[A-Za-z]+[0-9]`)
	// sizeVersion is the last part of most names.
	sizeVersion = regexp.MustCompile(`^[Vv][0-9]{1,2}$`)
)

// sizeName writes a size as Azure does: Standard_NC4as_T4_v3, for standard_nc4as_t4_v3, NC4as_T4_v3 and, as the portal has it,
// Standard NC4as T4 v3 (4 vcpus, 28 GiB memory).
func sizeName(name string) string {
	name, _, _ = strings.Cut(name, " (")
	parts := strings.Split(strings.ReplaceAll(strings.TrimSpace(name), " ", "_"), "_")
	if sizeFamily.MatchString(parts[0]) {
		parts = append([]string{"Standard"}, parts...)
	}
	if len(parts) < 2 || !sizeFamily.MatchString(parts[1]) {
		return strings.Join(parts, "_")
	}
	if tier := strings.ToLower(parts[0]); tier != "" {
		parts[0] = strings.ToUpper(tier[:1]) + tier[1:]
	}
	digit := strings.IndexAny(parts[1], "0123456789")
	parts[1] = strings.ToUpper(parts[1][:digit]) + strings.ToLower(parts[1][digit:])
	for i, part := range parts[2:] {
		switch {
		case sizeVersion.MatchString(part):
			parts[i+2] = strings.ToLower(part)
		case strings.EqualFold(part, "Promo"):
			parts[i+2] = "Promo"
		default:
			parts[i+2] = strings.ToUpper(part)
		}
	}
	return strings.Join(parts, "_")
}

// segments of resource IDs that are not names.
var segments = []string{
	"subscriptions", "resourceGroups", "providers", "Microsoft.Compute", "Microsoft.Network", "Microsoft.ManagedIdentity", "virtualNetworks",
	"subnets", "networkSecurityGroups", "userAssignedIdentities", "capacityReservationGroups", "availabilitySets",
	"virtualMachineScaleSets", "proximityPlacementGroups", "hostGroups", "diskEncryptionSets", "images", "galleries", "versions",
	"communityGalleries", "sharedGalleries",
}

// resourceID writes a resource ID as Azure documents it. Other providers begin it with azure://.
func resourceID(id string) string {
	parts := strings.Split(strings.Trim(strings.TrimPrefix(id, "azure://"), "/"), "/")
	if len(parts) < 2 {
		return id
	}
	for i := range parts {
		if i%2 == 0 || i == 5 && parts[4] == "providers" { // The others are names.
			parts[i] = inCase(parts[i])
		}
	}
	return "/" + strings.Join(parts, "/")
}

// inCase returns the segment in the case that Azure documents.
func inCase(segment string) string {
	for _, known := range segments {
		if strings.EqualFold(known, segment) {
			return known
		}
	}
	return segment
}

// canonicalImage sorts out what names the image, as az takes it: a resource ID, the ID of a community or shared gallery, or the URN
// publisher:offer:sku:version.
func canonicalImage(image infrav1.Image) infrav1.Image {
	id := strings.TrimRight(image.ID, "/")
	switch urn := strings.Split(id, ":"); {
	case len(urn) == 4:
		image.ID, image.Marketplace = "", &infrav1.MarketplaceImage{Publisher: urn[0], Offer: urn[1], SKU: urn[2], Version: urn[3]}
	case hasPrefixFold(id, "/communityGalleries/"):
		image.ID, image.CommunityGalleryImageID = "", id
	case hasPrefixFold(id, "/sharedGalleries/"):
		image.ID, image.SharedGalleryImageID = "", id
	case id != "":
		image.ID = resourceID(id)
	}
	image.CommunityGalleryImageID = versioned(image.CommunityGalleryImageID)
	image.SharedGalleryImageID = versioned(image.SharedGalleryImageID)
	return image
}

// versioned is the ID of an image of a gallery with its version, which is the latest if there is none.
func versioned(id string) string {
	if id == "" {
		return ""
	}
	if id = resourceID(id); !strings.Contains(id, "/versions/") {
		id += "/versions/latest"
	}
	return id
}

func hasPrefixFold(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}

// sshKeyOf reads a line of authorized_keys, or one in base64, as Cluster API's Azure provider has it.
func sshKeyOf(key string) string {
	key = strings.TrimSpace(key)
	if raw, err := base64.StdEncoding.DecodeString(key); err == nil && strings.HasPrefix(string(raw), "ssh-") {
		key = strings.TrimSpace(string(raw))
	}
	return key
}
