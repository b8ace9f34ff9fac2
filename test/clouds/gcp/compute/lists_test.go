package compute_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"millwright.dev/test/clouds/gcp/compute"
	"millwright.dev/test/clouds/simulator"
)

func TestFilters(t *testing.T) {
	f := newFixture(t, compute.Options{})
	f.running(zoneA, vm("a", with("labels", object{"team": "blue", "size": "s"})))
	f.running(zoneA, vm("b", with("labels", object{"team": "red"}), with("canIpForward", true)))
	f.running(zoneB, vm("c", in(zoneB), with("labels", object{})))
	for filter, expected := range map[string][]string{
		"":                               {"a", "b", "c"},
		"name=a":                         {"a"},
		`name = "a"`:                     {"a"},
		`(name = "a") OR (name = "c")`:   {"a", "c"},
		"labels.team:*":                  {"a", "b"},
		"labels.team=red":                {"b"},
		"labels.team=blue labels.size=s": {"a"},
		`labels.team:* AND NOT (labels.team = 'red')`:      {"a"},
		"labels.team!=red":                                 {"a", "c"},
		"canIpForward=true":                                {"b"},
		`machineType:e2-standard AND status=RUNNING`:       {"a", "b", "c"},
		"networkInterfaces.networkIP=10.128.0.3":           {"b"},
		"(labels.team=red OR labels.team=blue) AND name=a": {"a"},
	} {
		names, _ := f.names(project+"/aggregated/instances", url.Values{"filter": {filter}})
		f.Expect(names).To(ConsistOf(expected), filter)
	}
	for _, bad := range []string{"name", "name=", "(name=a", "name=a)", "= a", "name < a"} {
		_, reason, _ := f.refused("GET", project+"/aggregated/instances?filter="+url.QueryEscape(bad), nil)
		f.Expect(reason).To(Equal("invalid"), bad)
	}
}

func TestPages(t *testing.T) {
	f := newFixture(t, compute.Options{})
	for i := range 5 {
		zoneName := []string{zoneA, zoneB}[i%2]
		f.running(zoneName, vm(fmt.Sprintf("m%d", i), in(zoneName)))
	}
	for _, path := range []string{project + "/aggregated/instances", zone(zoneA) + "/instances"} {
		var all []string
		query := url.Values{"maxResults": {"2"}, "filter": {"labels.team=blue"}}
		for pages := 1; ; pages++ {
			names, answer := f.names(path, query)
			f.Expect(len(names)).To(BeNumerically("<=", 2))
			all = append(all, names...)
			next, _ := answer["nextPageToken"].(string)
			if next == "" {
				break
			}
			f.Expect(pages).To(BeNumerically("<", 5))
			query.Set("pageToken", next)
		}
		f.Expect(all).To(HaveLen(map[bool]int{true: 5, false: 3}[strings.Contains(path, "aggregated")]))
		query.Set("filter", "labels.team=red")
		query.Set("pageToken", "MSBsYWJlbHM")
		_, reason, _ := f.refused("GET", path+"?"+query.Encode(), nil)
		f.Expect(reason).To(Equal("invalid"), "the token is of another list")
	}
	_, reason, _ := f.refused("GET", zone(zoneA)+"/instances?maxResults=501", nil)
	f.Expect(reason).To(Equal("invalid"))
	names, _ := f.names(zone(zoneA)+"/instances", url.Values{"maxResults": {"0"}})
	f.Expect(names).To(HaveLen(3), "as many as there are by default")
}

// TestTheOrderOfLists is by name unless the newest are to come first; pages stay right while items go.
func TestTheOrderOfLists(t *testing.T) {
	f := newFixture(t, compute.Options{})
	for _, name := range []string{"b", "c", "a"} {
		f.running(zoneA, vm(name))
	}
	path := zone(zoneA) + "/instances"
	for order, expected := range map[string][]string{"": {"a", "b", "c"}, "name": {"a", "b", "c"}, "creationTimestamp desc": {"a", "c", "b"}} {
		var all []string
		for query := (url.Values{"orderBy": {order}, "maxResults": {"1"}}); ; {
			names, answer := f.names(path, query)
			all = append(all, names...)
			next, _ := answer["nextPageToken"].(string)
			if next == "" {
				break
			}
			query.Set("pageToken", next)
		}
		f.Expect(all).To(Equal(expected), order)
	}
	_, reason, _ := f.refused("GET", path+"?orderBy=status", nil)
	f.Expect(reason).To(Equal("invalid"))
	_, answer := f.names(path, url.Values{"maxResults": {"2"}})
	f.Expect(f.cloud.Vanish(project, zoneA, "a")).To(Succeed())
	names, _ := f.names(path, url.Values{"maxResults": {"2"}, "pageToken": {answer["nextPageToken"].(string)}})
	f.Expect(names).To(Equal([]string{"c"}), "none is left out because another one is gone")
}

func TestFields(t *testing.T) {
	f := newFixture(t, compute.Options{})
	f.running(zoneA, vm("one"))
	query := "?fields=" + url.QueryEscape("nextPageToken,items/*/instances(name,networkInterfaces/networkIP),items/*/warning/code")
	answer := f.done("GET", project+"/aggregated/instances"+query, nil)
	f.Expect(answer).To(Equal(object{"items": object{
		"zones/" + zoneA: object{"instances": []any{object{
			"name": "one", "networkInterfaces": []any{object{"networkIP": "10.128.0.2"}}}}},
		"zones/" + zoneB:       object{"warning": object{"code": "NO_RESULTS_ON_PAGE"}},
		"zones/us-central1-c":  object{"warning": object{"code": "NO_RESULTS_ON_PAGE"}},
		"zones/europe-west3-a": object{"warning": object{"code": "NO_RESULTS_ON_PAGE"}},
	}}))
}

func TestAZoneThatDoesNotAnswer(t *testing.T) {
	f := newFixture(t, compute.Options{})
	f.running(zoneA, vm("a"))
	f.running(zoneB, vm("b", in(zoneB)))
	f.cloud.SetUnreachable(zoneB)
	status, _, _ := f.refused("GET", project+"/aggregated/instances", nil)
	f.Expect(status).To(Equal(http.StatusServiceUnavailable))
	names, answer := f.names(project+"/aggregated/instances", url.Values{"returnPartialSuccess": {"true"}})
	f.Expect(names).To(ConsistOf("a"))
	f.Expect(answer["unreachables"]).To(HaveLen(1))
	f.Expect(answer["items"].(object)["zones/"+zoneB].(object)["warning"]).To(HaveKeyWithValue("code", "UNREACHABLE"))
}

// TestAZoneThatDoesNotAnswer is documented; a region that does not answer is in lists of disks alone, and what SetIncomplete does is in
// all.
func TestListsThatLackSomething(t *testing.T) {
	f := newFixture(t, compute.Options{})
	f.running(zoneA, vm("a"))
	f.cloud.SetUnreachable("regions/us-central1")
	partially := url.Values{"returnPartialSuccess": {"true"}}
	_, answer := f.names(project+"/aggregated/instances", partially)
	f.Expect(answer).NotTo(HaveKey("unreachables"))
	_, answer = f.names(project+"/aggregated/disks", partially)
	f.Expect(answer["unreachables"]).To(ConsistOf("regions/us-central1/disks"))
	f.cloud.SetUnreachable()
	f.cloud.SetIncomplete("LIST_OVERHEAD_QUOTA_EXCEED", zoneA)
	names, answer := f.names(project+"/aggregated/instances", nil)
	f.Expect(names).To(BeEmpty())
	f.Expect(answer["items"]).NotTo(HaveKey("zones/" + zoneA))
	f.Expect(answer["warning"]).To(HaveKeyWithValue("code", "LIST_OVERHEAD_QUOTA_EXCEED"))
}

func TestRateQuotasOfAMinute(t *testing.T) {
	f := newFixture(t, compute.Options{RatePerMinute: map[string]int{compute.GroupRead: 2}})
	f.call("GET", at(zoneA, "one"), nil)
	f.call("GET", at(zoneA, "one"), nil)
	status, reason, _ := f.refused("GET", at(zoneA, "one"), nil)
	f.Expect([]any{status, reason}).To(Equal([]any{http.StatusForbidden, "rateLimitExceeded"}))
	f.done("GET", zone(zoneA)+"/instances", nil)
	f.clock.Step(time.Minute)
	_, reason, _ = f.refused("GET", at(zoneA, "one"), nil)
	f.Expect(reason).To(Equal("notFound"), "the quota of the next minute")
}

func TestOperationsAreAwaited(t *testing.T) {
	f := newFixture(t, compute.Options{Delays: delays})
	operation := f.insert(zoneA, vm("one"))
	answered := make(chan object, 1)
	go func() {
		answered <- f.done("POST", operation+"/wait", nil)
	}()
	for range 3 {
		f.Eventually(f.clock.HasWaiters).Should(BeTrue())
		f.clock.Step(time.Second)
	}
	var done object
	f.Eventually(func() bool {
		f.clock.Step(time.Second)
		select {
		case done = <-answered:
		default:
		}
		return done != nil
	}).Should(BeTrue())
	f.Expect(done).To(HaveKeyWithValue("status", "DONE"))
}

func TestOperationsAreForgotten(t *testing.T) {
	f := newFixture(t, compute.Options{Delays: compute.Delays{Forget: time.Hour}})
	operation := f.insert(zoneA, vm("one"))
	f.clock.Step(2 * time.Hour)
	status, _, _ := f.refused("GET", operation, nil)
	f.Expect(status).To(Equal(http.StatusNotFound))
}

func TestFaultsAndTheLog(t *testing.T) {
	f := newFixture(t, compute.Options{})
	server := httptest.NewServer(f.cloud)
	defer server.Close()
	f.cloud.AddFault(
		simulator.Fault{Action: "instances.insert", Parameters: map[string]string{"zone": zoneA}, Count: 1, Cut: simulator.CutAfter},
	)
	r, err := http.NewRequestWithContext(t.Context(), "POST", server.URL+"/compute/v1/projects/"+zone(zoneA)+"/instances", strings.NewReader(
		`{"name":"one","machineType":"zones/us-central1-a/machineTypes/e2-micro","networkInterfaces":[{}],
		"metadata":{"items":[{"key":"user-data","value":"secret"}]},
		  "disks":[{"boot":true,"initializeParams":{"sourceImage":"projects/images/global/images/family/node"}}]}`))
	f.Expect(err).NotTo(HaveOccurred())
	r.Header.Set("Authorization", "Bearer token")
	answer, err := http.DefaultClient.Do(r)
	if err == nil {
		_ = answer.Body.Close()
	}
	f.Expect(err).To(HaveOccurred())
	f.Expect(f.cloud.Instances(project)).To(HaveLen(1), "the answer was lost after the effect")
	f.cloud.AddFault(simulator.Fault{Action: "instances.get", Count: 1, Error: &simulator.APIError{Code: "forbidden"}})
	status, reason, _ := f.refused("GET", at(zoneA, "one"), nil)
	f.Expect([]any{status, reason}).To(Equal([]any{http.StatusForbidden, "forbidden"}))
	calls := f.cloud.Calls()
	f.Expect(calls).To(HaveLen(2))
	f.Expect(calls[0].Parameters).To(And(HaveKeyWithValue("machineType", "e2-micro"), HaveKeyWithValue("metadata.user-data.size", "6")))
	f.Expect(fmt.Sprint(calls)).NotTo(ContainSubstring("secret"))
}

func TestMetadataServer(t *testing.T) {
	f := newFixture(t, compute.Options{})
	f.running(zoneA, vm("one", with("metadata", object{"items": []any{object{"key": "user-data", "value": "#cloud-config\n"}}}),
		with("serviceAccounts", []any{object{"email": "default", "scopes": []string{"https://www.googleapis.com/auth/cloud-platform"}}})))
	service := f.cloud.Metadata(project, zoneA, "one")
	f.Expect(f.cloud.Metadata(project, zoneA, "none")).To(BeNil())
	get := func(path string, header http.Header) (int, string) {
		r := httptest.NewRequest("GET", path, http.NoBody)
		r.Header = header
		w := httptest.NewRecorder()
		service.ServeHTTP(w, r)
		f.Expect(w.Header().Get("Metadata-Flavor")).To(Equal("Google"))
		content, _ := io.ReadAll(w.Body)
		return w.Code, string(content)
	}
	google := http.Header{"Metadata-Flavor": {"Google"}}
	for path, expected := range map[string]string{
		"/computeMetadata/v1/instance/attributes/user-data":                   "#cloud-config\n",
		"/computeMetadata/v1/instance/name":                                   "one",
		"/computeMetadata/v1/project/project-id":                              project,
		"/computeMetadata/v1/instance/attributes/":                            "user-data\n",
		"/computeMetadata/v1/instance/attributes/?recursive=true":             `{"user-data":"#cloud-config\n"}` + "\n",
		"/computeMetadata/v1/instance/network-interfaces/0/ip":                "10.128.0.2",
		"/computeMetadata/v1/instance/service-accounts/default/token":         `{"access_token":"token-of-the-simulator","expires_in":3599,"token_type":"Bearer"}`,
		"/computeMetadata/v1/instance/service-accounts/default/scopes":        "https://www.googleapis.com/auth/cloud-platform",
		"/computeMetadata/v1/instance/service-accounts/default/?alt=json&x=1": "",
	} {
		code, content := get(path, google)
		f.Expect(code).To(Equal(http.StatusOK), path)
		if expected != "" {
			f.Expect(content).To(Equal(expected), path)
		}
	}
	code, _ := get("/computeMetadata/v1/instance/name", http.Header{})
	f.Expect(code).To(Equal(http.StatusForbidden))
	code, _ = get("/computeMetadata/v1/instance/name", http.Header{"Metadata-Flavor": {"Google"}, "X-Forwarded-For": {"10.0.0.1"}})
	f.Expect(code).To(Equal(http.StatusForbidden))
	code, _ = get("/computeMetadata/v1/instance/attributes/none", google)
	f.Expect(code).To(Equal(http.StatusNotFound))
}

func TestWhatTheCatalogHas(t *testing.T) {
	f := newFixture(t, compute.Options{})
	f.Expect(f.done("GET", zone(zoneA)+"/machineTypes/e2-standard-2", nil)).To(HaveKeyWithValue("memoryMb", BeEquivalentTo(8192)))
	_, reason, _ := f.refused("GET", zone("us-central1-c")+"/machineTypes/n2-standard-4", nil)
	f.Expect(reason).To(Equal("notFound"))
	f.Expect(f.done("GET", project+"/zones/"+zoneA, nil)).
		To(And(HaveKeyWithValue("status", "UP"), HaveKeyWithValue("region", HaveSuffix("/us-central1"))))
	names, _ := f.names(project+"/zones", nil)
	f.Expect(names).To(HaveLen(4))
	f.Expect(f.done("GET", "images/global/images/family/node", nil)).
		To(And(HaveKeyWithValue("name", "node-v1-36-3"), HaveKeyWithValue("diskSizeGb", "10")))
	f.Expect(f.done("GET", "shared-network/regions/us-central1/subnetworks/nodes", nil)).To(HaveKeyWithValue("ipCidrRange", "10.7.0.0/24"))
}
