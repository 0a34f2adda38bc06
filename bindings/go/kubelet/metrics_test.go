package kubelet

import (
	"strings"
	"testing"

	"k8s.io/component-base/metrics/legacyregistry"
	"waybill.dev/go"
	"waybill.dev/go/store"
)

// gathered has the metrics by name and labels.
func gathered(t *testing.T) map[string]float64 {
	t.Helper()
	families, err := legacyregistry.DefaultGatherer.Gather()
	must(t, err)
	values := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			name := family.GetName()
			for _, label := range metric.GetLabel() {
				name += " " + label.GetValue()
			}
			values[name] = metric.GetGauge().GetValue() + metric.GetCounter().GetValue()
		}
		if strings.HasPrefix(family.GetName(), "waybill_") && family.GetHelp() == "" {
			t.Errorf("%s has no help", family.GetName())
		}
	}
	return values
}

func TestDecisionsAreCountedInTheKubeletsOwnCounter(t *testing.T) {
	shared := sharedMetrics()
	const counter = "kubelet_" + mustPullChecksName + " mustAuthenticate"
	before := gathered(t)[counter]
	shared.count("mustAuthenticate")
	shared.count("")
	if got := gathered(t)[counter] - before; got != 1 {
		t.Errorf("the kubelet's counter rose by %v, want 1", got)
	}
	for _, gauge := range []string{shared.intents.FQName(), shared.records.FQName()} {
		if !strings.HasPrefix(gauge, "kubelet_imagemanager_ondisk_") {
			t.Errorf("a gauge of the kubelet is %s", gauge)
		}
	}
}

func TestTheStoresMetricsAreBesideTheKubelets(t *testing.T) {
	opened := openTestStore(t, store.Options{Settings: waybill.Settings{Mode: waybill.ModeKubelet}})
	if _, err := NewImagePullManager(opened, nil); err != nil {
		t.Fatal(err)
	}
	pulledInto(t, opened, waybill.EndPull{Image: "app:v1", ImageRef: "ref", Credentials: &waybill.PulledWith{EveryPod: true}})
	opened.Decide(store.ImageCopy{Image: "app:v1", ImageRef: "ref"}, store.PodCredentials{})
	got := gathered(t)
	for name, want := range map[string]float64{
		"waybill_live_owner": 1, "waybill_records (default)": 1,
		"waybill_decisions_total nodePodsAccessible": 1, "waybill_distrustful": 0,
	} {
		if value, ok := got[name]; !ok || value != want {
			t.Errorf("%s is %v, want %v: %v", name, value, want, got)
		}
	}
	must(t, opened.Close())
	for name := range gathered(t) { // none, also none of the kubelet's under another name
		if strings.HasPrefix(name, "waybill_") {
			t.Errorf("of a closed store: %s", name)
		}
	}
}
