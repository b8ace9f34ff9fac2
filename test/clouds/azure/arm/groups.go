package arm

import (
	"net/http"
	"strings"
)

func groupBody(s *Server, g Group) map[string]any {
	return map[string]any{
		"id": "/subscriptions/" + g.Subscription + "/resourceGroups/" + g.Name, "name": g.Name, "type": "Microsoft.Resources/resourceGroups",
		"location": s.options.Catalog.Location, "properties": map[string]string{"provisioningState": "Succeeded"},
	}
}

func listGroups(s *Server, in *request) (reply, error) {
	found := []any{}
	for _, g := range s.options.Catalog.Groups {
		if strings.EqualFold(g.Subscription, in.subscription) {
			found = append(found, groupBody(s, g))
		}
	}
	return ok(map[string]any{"value": found})
}

func getGroup(s *Server, in *request) (reply, error) {
	return ok(groupBody(s, *s.options.Catalog.group(in.subscription, in.group)))
}

// listSKUs lists the sizes of virtual machines; $filter has location eq '<location>' or nothing.
func listSKUs(s *Server, in *request) (reply, error) {
	if filter := in.http.URL.Query().Get("$filter"); filter != "" && filter != "location eq '"+s.options.Catalog.Location+"'" {
		return ok(map[string]any{"value": []any{}})
	}
	found := []any{}
	for _, size := range s.options.Catalog.Sizes {
		found = append(found, s.skuItem(size))
	}
	return ok(map[string]any{"value": found})
}

func getSubnet(s *Server, in *request) (reply, error) {
	subnet := s.options.Catalog.subnet(in.http.URL.Path)
	if subnet == nil {
		return reply{}, fail(http.StatusNotFound, "NotFound", "Resource %s not found.", in.http.URL.Path)
	}
	name := subnet.ID[strings.LastIndex(subnet.ID, "/")+1:]
	return ok(map[string]any{
		"id": subnet.ID, "name": name, "properties": map[string]string{"provisioningState": "Succeeded", "addressPrefix": subnet.Prefix +
			".0.0/22"},
	})
}

// getImage reads an image of the catalog, as far as its size.
func getImage(s *Server, in *request) (reply, error) {
	image := s.options.Catalog.image(in.http.URL.Path)
	if image == nil {
		return reply{}, fail(http.StatusNotFound, "ResourceNotFound", "The Resource '%s' was not found.", in.http.URL.Path)
	}
	name := image.ID[strings.LastIndex(image.ID, "/")+1:]
	disk := map[string]any{"osDisk": map[string]any{"osType": "Linux", "diskSizeGB": image.SizeGiB}}
	if in.action == "GalleryImageVersions_Get" {
		disk = map[string]any{"osDiskImage": map[string]any{"sizeInGB": image.SizeGiB}}
	}
	return ok(map[string]any{"id": image.ID, "name": name, "location": s.options.Catalog.Location, "properties": map[string]any{
		"provisioningState": "Succeeded", "storageProfile": disk,
	}})
}
