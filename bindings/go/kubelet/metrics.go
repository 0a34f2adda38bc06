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

const (
	mustPullChecksName = "imagemanager_image_mustpull_checks_total"
	mustPullChecksHelp = "Counter for how many times kubelet checked whether credentials need to be re-verified to access an image"
	intentsName        = "imagemanager_ondisk_pullintents"
	intentsHelp        = "Number of ImagePullIntents stored on disk."
	recordsName        = "imagemanager_ondisk_pulledrecords"
	recordsHelp        = "Number of ImagePulledRecords stored on disk."
)

var sharedMetrics = sync.OnceValue(func() *kubeletMetrics {
	return &kubeletMetrics{
		mustPullChecks: existingOr(kubeletmetrics.KubeletSubsystem, func(subsystem string) *metrics.CounterVec {
			return metrics.NewCounterVec(&metrics.CounterOpts{
				Subsystem: subsystem, Name: mustPullChecksName, Help: mustPullChecksHelp, StabilityLevel: metrics.ALPHA,
			}, []string{"result"})
		}),
		intents: existingOr(kubeletmetrics.KubeletSubsystem, func(subsystem string) *metrics.Gauge {
			return metrics.NewGauge(&metrics.GaugeOpts{
				Subsystem: subsystem, Name: intentsName, Help: intentsHelp, StabilityLevel: metrics.ALPHA,
			})
		}),
		records: existingOr(kubeletmetrics.KubeletSubsystem, func(subsystem string) *metrics.Gauge {
			return metrics.NewGauge(&metrics.GaugeOpts{
				Subsystem: subsystem, Name: recordsName, Help: recordsHelp, StabilityLevel: metrics.ALPHA,
			})
		}),
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

// noteIntents and noteRecords are called at the start and after each write, as the kubelet counts its
// files.
func (m *kubeletMetrics) noteIntents(logger klog.Logger, store *store.Store) {
	if counts, ok := m.read(logger, store, intentsName); ok {
		m.intents.Set(float64(counts.Intents))
	}
}

func (m *kubeletMetrics) noteRecords(logger klog.Logger, store *store.Store) {
	if counts, ok := m.read(logger, store, recordsName); ok {
		m.records.Set(float64(counts.Records))
	}
}

func (m *kubeletMetrics) read(logger klog.Logger, store *store.Store, name string) (waybill.Counts, bool) {
	status, err := store.GetStatus(context.Background(), waybill.GetStatus{Brief: true})
	if err != nil {
		logger.V(4).Info("failed to read the store's statistics, can't update metric", "metricName", name, "error", err)
	}
	return status.Counts, err == nil
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
