package kubelet

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"
	kubeletmetrics "k8s.io/kubernetes/pkg/kubelet/metrics"
	"waybill.dev/go"
	"waybill.dev/go/store"
)

// The kubelet's metrics of KEP-2535 are private variables of pullmanager, which registers them with
// legacyregistry when it is loaded; importing it here loads it. Registering a metric with the same
// description again fails with prometheus.AlreadyRegisteredError, which holds the registered one: the
// kubelet's own counter, to which this package adds. If a later kubelet describes a metric
// differently, the registration fails in another way, and a metric of our own is registered instead.
type kubeletMetrics struct {
	mustPullChecks *metrics.CounterVec
	intents        *metrics.Gauge
	records        *metrics.Gauge
}

const mustPullChecksName = "imagemanager_image_mustpull_checks_total"

var sharedMetrics = sync.OnceValue(func() *kubeletMetrics {
	gauge := func(name, help string) *metrics.Gauge {
		return existingOr(kubeletmetrics.KubeletSubsystem, func(subsystem string) *metrics.Gauge {
			return metrics.NewGauge(&metrics.GaugeOpts{Subsystem: subsystem, Name: name, Help: help, StabilityLevel: metrics.ALPHA})
		})
	}
	return &kubeletMetrics{
		mustPullChecks: existingOr(kubeletmetrics.KubeletSubsystem, func(subsystem string) *metrics.CounterVec {
			return metrics.NewCounterVec(&metrics.CounterOpts{
				Subsystem: subsystem, Name: mustPullChecksName, StabilityLevel: metrics.ALPHA,
				Help: "Counter for how many times kubelet checked whether credentials need to be re-verified to access an image",
			}, []string{"result"})
		}),
		intents: gauge("imagemanager_ondisk_pullintents", "Number of ImagePullIntents stored on disk."),
		records: gauge("imagemanager_ondisk_pulledrecords", "Number of ImagePulledRecords stored on disk."),
	}
})

// existingOr returns the registered metric with the same description as make's, or registers make's.
// If another metric has the name, it registers make's under "waybill".
func existingOr[M metrics.Registerable](subsystem string, make func(subsystem string) M) M {
	own := make(subsystem)
	err := legacyregistry.Register(own)
	if err == nil {
		return own
	}
	var taken prometheus.AlreadyRegisteredError
	if errors.As(err, &taken) {
		if existing, ok := taken.ExistingCollector.(M); ok {
			return existing
		}
	}
	own = make("waybill_" + subsystem)
	if err := legacyregistry.Register(own); err != nil {
		klog.Background().Error(err, "failed to register a metric", "subsystem", subsystem)
	}
	return own
}

// count adds a decision, unless the image was not on the node.
func (m *kubeletMetrics) count(result string) {
	if result != "" {
		m.mustPullChecks.WithLabelValues(result).Inc()
	}
}

// note is called at the start and after each write, as the kubelet counts its files.
func (m *kubeletMetrics) note(logger klog.Logger, store *store.Store) {
	status, err := store.GetStatus(context.Background(), waybill.GetStatus{Brief: true})
	if err != nil {
		logger.V(4).Info("failed to read the store's statistics, can't update metrics", "error", err)
		return
	}
	m.intents.Set(float64(status.Counts.Intents))
	m.records.Set(float64(status.Counts.Records))
}

// storeCollector shows the metrics of waybill (waybill_…) of the store that was last given to
// NewImagePullManager or NewRecordsAccessor. Those under the kubelet's names stay the kubelet's.
type storeCollector struct {
	store atomic.Pointer[store.Store]
}

var shownStore = sync.OnceValue(func() *storeCollector {
	collector := &storeCollector{}
	legacyregistry.RawMustRegister(collector)
	return collector
})

// metricsOf shows a store's metrics from now on, and returns the kubelet's, which count it.
func metricsOf(store *store.Store) *kubeletMetrics {
	m := sharedMetrics()
	m.note(klog.Background(), store)
	shownStore().store.Store(store)
	return m
}

// Describe sends nothing: which metrics there are depends on the library that is loaded.
func (c *storeCollector) Describe(chan<- *prometheus.Desc) {}

// Collect sends nothing of a store that is closed, so that the kubelet's other metrics are still there.
func (c *storeCollector) Collect(metrics chan<- prometheus.Metric) {
	store := c.store.Load()
	if store == nil {
		return
	}
	answer, err := store.GetMetrics(context.Background())
	if err != nil {
		klog.Background().V(4).Info("failed to read the store's metrics", "error", err)
		return
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(answer.Text))
	if err != nil {
		klog.Background().Error(err, "the store's metrics do not parse")
		return
	}
	for _, name := range slices.Sorted(maps.Keys(families)) {
		if strings.HasPrefix(name, "waybill_") {
			collectFamily(families[name], metrics)
		}
	}
}

func collectFamily(family *dto.MetricFamily, metrics chan<- prometheus.Metric) {
	for _, series := range family.GetMetric() {
		var names, values []string
		for _, label := range series.GetLabel() {
			names = append(names, label.GetName())
			values = append(values, label.GetValue())
		}
		kind, value := prometheus.GaugeValue, series.GetGauge().GetValue()
		if family.GetType() == dto.MetricType_COUNTER {
			kind, value = prometheus.CounterValue, series.GetCounter().GetValue()
		}
		desc := prometheus.NewDesc(family.GetName(), family.GetHelp(), names, nil)
		metric, err := prometheus.NewConstMetric(desc, kind, value, values...)
		if err != nil {
			metric = prometheus.NewInvalidMetric(desc, err)
		}
		metrics <- metric
	}
}
