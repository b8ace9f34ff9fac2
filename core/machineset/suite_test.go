package machineset

import (
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"millwright.dev/contracts/version"
	"millwright.dev/test/testenv"
)

const (
	infraGroup     = "infrastructure.example.com"
	bootstrapGroup = "bootstrap.example.com"
	// controlPlaneGroup is that of control planes.
	controlPlaneGroup = "controlplane.example.com"
	clusterName       = "c"
	waiting           = 60 * time.Second
	pollInterval      = 50 * time.Millisecond
)

var (
	env    *testenv.Env
	scheme = runtime.NewScheme()
	// direct reads and writes without a cache.
	direct client.Client
	// namespaces counts those handed out.
	namespaces atomic.Int32
)

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	if os.Getenv("MILLWRIGHT_PURE_TESTS") != "" {
		// Those of pure functions alone, see test/mutate.
		return m.Run()
	}
	log.SetLogger(klog.Background())
	must(testenv.RunSideBySide(), clientgoscheme.AddToScheme(scheme), clusterv1.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme))
	var err error
	env, err = testenv.Start(testenv.Options{
		CRDs: []testenv.CRDs{testenv.CoreCRDs},
		Objects: []*apiextensionsv1.CustomResourceDefinition{
			standIn(infraGroup, "StandInMachine"), standIn(infraGroup, "StandInMachineTemplate"),
			standIn(controlPlaneGroup, "StandInControlPlane"),
			standIn(bootstrapGroup, "StandInConfig"), standIn(bootstrapGroup, "StandInConfigTemplate"),
		},
	})
	must(err)
	defer func() { must(env.Stop()) }()
	direct, err = client.New(env.Config, client.Options{Scheme: scheme})
	must(err)
	return m.Run()
}

func must(errs ...error) {
	for _, err := range errs {
		if err != nil {
			panic(err)
		}
	}
}

// standIn is a kind that keeps both contracts and takes any field.
func standIn(group, kind string) *apiextensionsv1.CustomResourceDefinition {
	plural := strings.ToLower(kind) + "s"
	open := apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: ptr.To(true)}
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{
			Name:   plural + "." + group,
			Labels: map[string]string{version.Label(version.V1Beta2): "v1"},
		},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group,
			Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: kind, ListKind: kind + "List", Plural: plural, Singular: strings.ToLower(kind)},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &open},
			}},
		},
	}
}
