package ec2

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// maxTokenTTL is the longest life of a session token, in seconds.
const maxTokenTTL = 21600

// metadataService is the instance metadata service of one instance, see
// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instancedata-data-retrieval.html.
type metadataService struct {
	server   *Server
	instance string

	mu     sync.Mutex
	tokens map[string]time.Time
}

// Metadata is the metadata service of the instance, for a listener of its own: the listener identifies the instance that asks,
// as at 169.254.169.254 inside an instance.
func (s *Server) Metadata(instanceID string) http.Handler {
	return &metadataService{server: s, instance: instanceID, tokens: map[string]time.Time{}}
}

// ServeHTTP answers session tokens, user data, metadata and the identity document.
func (m *metadataService) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	tree, options, ok := m.server.metadataOf(m.instance)
	switch {
	case !ok:
		http.NotFound(w, r)
	case options.endpoint == "disabled":
		http.Error(w, "", http.StatusForbidden)
	case r.Method == http.MethodPut && r.URL.Path == "/latest/api/token":
		m.issue(w, r)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		http.Error(w, "", http.StatusMethodNotAllowed)
	case !m.allowed(r, options):
		w.WriteHeader(http.StatusUnauthorized)
	default:
		get(w, r, tree)
	}
}

// issue issues a session token. A request that came through a proxy gets none.
func (m *metadataService) issue(w http.ResponseWriter, r *http.Request) {
	ttl, err := strconv.Atoi(r.Header.Get("X-aws-ec2-metadata-token-ttl-seconds"))
	if err != nil || ttl < 1 || ttl > maxTokenTTL {
		http.Error(w, "", http.StatusBadRequest)
		return
	}
	if r.Header.Get("X-Forwarded-For") != "" {
		http.Error(w, "", http.StatusForbidden)
		return
	}
	token := m.server.requestID() + m.server.requestID()
	m.mu.Lock()
	m.tokens[token] = m.server.clock.Now().Add(time.Duration(ttl) * time.Second)
	m.mu.Unlock()
	w.Header().Set("X-aws-ec2-metadata-token-ttl-seconds", strconv.Itoa(ttl))
	_, _ = w.Write([]byte(token))
}

// allowed checks the token: it must be valid when it is there, and be there when tokens are required.
func (m *metadataService) allowed(r *http.Request, options metadataOptions) bool {
	token := r.Header.Get("X-aws-ec2-metadata-token")
	if token == "" {
		return options.tokens != "required"
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	until, ok := m.tokens[token]
	return ok && m.server.clock.Now().Before(until)
}

// get answers a path: a leaf with its value, a directory with the names in it.
func get(w http.ResponseWriter, r *http.Request, tree map[string]string) {
	path := strings.TrimSuffix(strings.TrimPrefix(r.URL.Path, "/latest/"), "/")
	w.Header().Set("Content-Type", "text/plain")
	if v, ok := tree[path]; ok {
		_, _ = w.Write([]byte(v))
		return
	}
	names := map[string]bool{}
	for k := range tree {
		if rest, ok := strings.CutPrefix(k, path+"/"); ok {
			name, _, directory := strings.Cut(rest, "/")
			if directory {
				name += "/"
			}
			names[name] = true
		}
	}
	if len(names) == 0 {
		http.NotFound(w, r)
		return
	}
	_, _ = w.Write([]byte(strings.Join(sortedKeys(names), "\n")))
}

// metadataOf is all that the service knows of a live instance, by path below /latest/.
func (s *Server) metadataOf(id string) (map[string]string, metadataOptions, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance(s.clock.Now())
	found := find(s.instances, func(i **instance) bool { return (*i).id == id })
	if found == nil || (*found).primary() == nil {
		return nil, metadataOptions{}, false
	}
	i, n := *found, (*found).primary()
	l := i.launch
	host := s.privateDNS(n.privateIP)
	tree := map[string]string{
		"meta-data/ami-id": l.image.ID, "meta-data/ami-launch-index": strconv.Itoa(i.launchIndex), "meta-data/hostname": host,
		"meta-data/instance-id": i.id, "meta-data/instance-type": l.kind.Name, "meta-data/local-hostname": host,
		"meta-data/local-ipv4": n.privateIP, "meta-data/mac": n.mac, "meta-data/instance-life-cycle": lifecycle(l),
		"meta-data/placement/availability-zone":    l.zone.AvailabilityZone,
		"meta-data/placement/availability-zone-id": l.zone.AvailabilityZoneID,
		"meta-data/placement/region":               s.options.Region,
		"meta-data/reservation-id":                 i.reservationID,
		"meta-data/services/domain":                "amazonaws.com", "meta-data/services/partition": "aws",
		"dynamic/instance-identity/document": s.identityDocument(i, n.privateIP),
	}
	if l.profile != "" {
		tree["meta-data/iam/security-credentials/"+l.profile] = s.roleCredentials()
	}
	for _, nic := range i.interfaces {
		base := "meta-data/network/interfaces/macs/" + nic.mac + "/"
		tree[base+"device-number"], tree[base+"interface-id"] = strconv.Itoa(nic.request.deviceIndex), nic.id
		tree[base+"local-ipv4s"], tree[base+"subnet-id"], tree[base+"vpc-id"] = nic.privateIP, nic.subnet.ID, nic.subnet.VPCID
	}
	if n.publicIP != "" {
		tree["meta-data/public-ipv4"], tree["meta-data/public-hostname"] = n.publicIP, s.publicDNS(n.publicIP)
	}
	if len(l.userData) > 0 {
		tree["user-data"] = string(l.userData)
	}
	if l.metadata.tags == "enabled" {
		for k, v := range i.tags {
			tree["meta-data/tags/instance/"+k] = v
		}
	}
	return tree, l.metadata, true
}

// roleCredentials are those of the role of an instance, which is named like its profile. Any key is taken for calls, unless
// Options.AccessKeyIDs lists those that are.
func (s *Server) roleCredentials() string {
	key := "ASIASIMULATEDNODE"
	if len(s.options.AccessKeyIDs) > 0 {
		key = s.options.AccessKeyIDs[0]
	}
	now := s.clock.Now().UTC()
	raw, err := json.MarshalIndent(map[string]any{
		"Code": "Success", "LastUpdated": now.Format(time.RFC3339), "Type": "AWS-HMAC", "AccessKeyId": key,
		"SecretAccessKey": "simulated/secret+key", "Token": "simulated/session+token==",
		"Expiration": now.Add(6 * time.Hour).Format(time.RFC3339),
	}, "", "  ")
	if err != nil {
		return ""
	}
	return string(raw)
}

func lifecycle(l *launch) string {
	if l.spot {
		return "spot"
	}
	return "on-demand"
}

func (s *Server) identityDocument(i *instance, ip string) string {
	raw, err := json.MarshalIndent(map[string]any{
		"accountId": s.options.AccountID, "architecture": i.launch.image.Architecture,
		"availabilityZone": i.launch.zone.AvailabilityZone, "imageId": i.launch.image.ID, "instanceId": i.id,
		"instanceType": i.launch.kind.Name, "pendingTime": i.launchTime.UTC().Format("2006-01-02T15:04:05Z"),
		"privateIp": ip, "region": s.options.Region, "version": "2017-09-30",
	}, "", "  ")
	if err != nil {
		return ""
	}
	return string(raw)
}
