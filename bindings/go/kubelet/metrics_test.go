package kubelet

import (
	"strings"
	"testing"

	"k8s.io/component-base/metrics/legacyregistry"
	"waybill.dev/go"
)

func counterOf(t *testing.T, label string) float64 {
	t.Helper()
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() != "kubelet_"+mustPullChecksName {
			continue
		}
		for _, metric := range family.GetMetric() {
			if metric.GetLabel()[0].GetValue() == label {
				return metric.GetCounter().GetValue()
			}
		}
	}
	return 0
}

func TestDecisionsAreCountedInTheKubeletsOwnCounter(t *testing.T) {
	shared := sharedMetrics()
	if name := shared.mustPullChecks.FQName(); name != "kubelet_"+mustPullChecksName {
		t.Fatalf("the counter is %s", name)
	}
	before := counterOf(t, "mustAuthenticate")
	shared.count(waybill.CheckMustAuthenticate)
	shared.count(waybill.CheckNotCounted)
	if got := counterOf(t, "mustAuthenticate") - before; got != 1 {
		t.Errorf("the kubelet's counter rose by %v, want 1", got)
	}
	for _, gauge := range []string{shared.intents.FQName(), shared.records.FQName()} {
		if !strings.HasPrefix(gauge, "kubelet_imagemanager_ondisk_") {
			t.Errorf("a gauge of the kubelet is %s", gauge)
		}
	}
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if strings.HasPrefix(family.GetName(), "waybill_") {
			t.Errorf("%s was registered beside the kubelet's own", family.GetName())
		}
	}
}
