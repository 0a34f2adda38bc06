package kubelet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/distribution/reference"
	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"k8s.io/klog/v2"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	"k8s.io/kubernetes/pkg/kubelet/images/pullmanager"
	"waybill.dev/go"
	"waybill.dev/go/store"
)

var errFetch = errors.New("the API server is away")

// quiet drops the log of the errors that histories provoke.
var quiet = klog.NewContext(context.Background(), logr.Discard())

// runtimeImages is a container runtime that says which images it has.
type runtimeImages struct {
	kubecontainer.ImageService
	images []kubecontainer.Image
	err    error
	listed int                       // how often it was asked
	during func(ctx context.Context) // while it lists; nil: nothing
}

func (r *runtimeImages) ListImages(ctx context.Context) ([]kubecontainer.Image, error) {
	r.listed++
	images, err := r.images, r.err
	if r.during != nil {
		r.during(ctx)
	}
	if err != nil {
		return nil, err
	}
	return images, nil
}

// GetImageRef finds an image by its ID, or by a name in any spelling.
func (r *runtimeImages) GetImageRef(_ context.Context, spec kubecontainer.ImageSpec) (string, error) {
	if r.err != nil {
		return "", r.err
	}
	for _, image := range r.images {
		names := slices.Concat(image.RepoTags, image.RepoDigests)
		if image.ID == spec.Image || slices.ContainsFunc(names, func(name string) bool { return normalised(name) == normalised(spec.Image) }) {
			return image.ID, nil
		}
	}
	return "", nil
}

// contender is one kubelet: its manager, and where it keeps its records.
type contender struct {
	name     string
	runtime  *runtimeImages
	manager  pullmanager.ImagePullManager
	accessor pullmanager.PullRecordsAccessor
	store    *store.Store // nil for the kubelet's files
	now      time.Time    // as the clock was set last
	manual   bool         // our store, with a clock that is set
	gauges   [2]float64
	start    func(c *contender, s step) error // makes manager and accessor anew, as a restart does
}

// kubeletOverFiles is the judge: it is entirely the kubelet's code.
func kubeletOverFiles(directory string) *contender {
	return &contender{name: "kubelet over files", runtime: &runtimeImages{}, start: func(c *contender, s step) error {
		accessor, err := pullmanager.NewFSPullRecordsAccessor(logr.Discard(), directory)
		if err != nil {
			return err
		}
		return c.startKubelets(accessor, s)
	}}
}

func (c *contender) startKubelets(accessor pullmanager.PullRecordsAccessor, s step) error {
	policy, err := pullmanager.NewImagePullCredentialVerificationPolicy(s.policy, s.allowlist)
	if err != nil {
		return err
	}
	c.accessor = accessor
	c.manager, err = pullmanager.NewImagePullManager(quiet, accessor, policy, c.runtime, 10)
	return err
}

func kubeletOverStore(directory string) *contender {
	return &contender{name: "kubelet over waybill", runtime: &runtimeImages{}, start: func(c *contender, s step) error {
		if err := c.open(store.Options{Directory: directory, Settings: waybill.Settings{Mode: waybill.ModeKubelet}}); err != nil {
			return err
		}
		accessor, err := NewRecordsAccessor(c.store)
		if err != nil {
			return err
		}
		return c.startKubelets(accessor, s)
	}}
}

func ourManager(directory string) *contender {
	return &contender{name: "our manager", runtime: &runtimeImages{}, start: func(c *contender, s step) error {
		policy, err := VerificationPolicy(s.policy, s.allowlist)
		if err != nil {
			return err
		}
		options := store.Options{Directory: directory, Settings: waybill.Settings{Mode: waybill.ModeKubelet, Policy: policy}}
		// As OpenStore does.
		if images, err := c.runtime.ListImages(quiet); err == nil {
			options.Images, options.AllowEmpty = ImagesOnNode(images), true
		}
		if err := c.open(options); err != nil {
			return err
		}
		if c.accessor, err = newRecordsAccessor(c.store); err != nil {
			return err
		}
		c.manager, err = NewImagePullManager(c.store, c.runtime)
		return err
	}}
}

func (c *contender) open(options store.Options) error {
	if err := c.stop(); err != nil {
		return err
	}
	c.manual, c.now = true, time.Now()
	options.ManualClock, options.UnixNs, options.BootNs = true, c.now.UnixNano(), int64(sinceBoot())
	options.LossMarker = store.NoLossMarker
	options.Settings.MapBytes = 64 << 20
	var err error
	c.store, err = store.Open(options)
	return err
}

// sinceBoot is the machine's own time: it booted an hour before the fake time began.
func sinceBoot() time.Duration { return time.Since(time.Date(1999, 12, 31, 23, 0, 0, 0, time.UTC)) }

func (c *contender) stop() error {
	if c.store == nil {
		return nil
	}
	closing := c.store
	c.store = nil
	return closing.Close()
}

// answer is everything observable about one step.
type answer struct {
	err     error
	failed  bool
	pull    bool
	fetched int
	labels  [4]float64
	// The gauges after the step; -1: the judge's step did not set them.
	intents, records float64
}

var checkLabels = [4]string{"credentialPolicyAllowed", "credentialRecordFound", "mustAuthenticate", "error"}

func readMetric(m prometheus.Metric) float64 {
	var read dto.Metric
	if err := m.Write(&read); err != nil {
		panic(err)
	}
	if read.Counter != nil {
		return read.Counter.GetValue()
	}
	return read.Gauge.GetValue()
}

func readLabels() (values [4]float64) {
	for i, label := range checkLabels {
		values[i] = readMetric(sharedMetrics().mustPullChecks.WithLabelValues(label).(prometheus.Metric))
	}
	return values
}

func (c *contender) do(s step) (a answer) {
	if now := time.Now(); c.manual && !now.Equal(c.now) {
		// Time passes: queued write-backs are on disk by now. The kubelet writes them within the
		// decision.
		if c.store != nil {
			if a.err = errors.Join(c.store.Flush(quiet), c.store.SetTime(now, sinceBoot())); a.err != nil {
				a.failed = true
				return a
			}
		}
		c.now = now
	}
	gauges := [2]prometheus.Gauge{
		sharedMetrics().intents.GaugeMetric.(prometheus.Gauge),
		sharedMetrics().records.GaugeMetric.(prometheus.Gauge),
	}
	gauges[0].Set(-1)
	gauges[1].Set(-1)
	before := readLabels()
	a.err = c.act(s, &a)
	a.failed = a.err != nil
	for i, value := range readLabels() {
		a.labels[i] = value - before[i]
	}
	a.intents, a.records = readMetric(gauges[0]), readMetric(gauges[1])
	if c.store != nil { // the judge sets a gauge where it writes a file, we where a number may change
		a.intents, a.records = valueOr(a.intents, c.gauges[0]), valueOr(a.records, c.gauges[1])
		c.gauges = [2]float64{a.intents, a.records}
	}
	return a
}

func valueOr(set, before float64) float64 {
	if set < 0 {
		return before
	}
	return set
}

func (c *contender) act(s step, a *answer) error {
	ctx, logger := quiet, logr.Discard()
	c.runtime.images, c.runtime.err = s.onNode, nil
	switch s.what {
	case decide:
		var err error
		a.pull, err = c.manager.MustAttemptImagePull(ctx, s.image, s.ref, func() ([]kubeletconfig.ImagePullSecret, *kubeletconfig.ImagePullServiceAccount, error) {
			a.fetched++
			if s.fetchErr {
				return nil, nil, errFetch
			}
			return s.secrets, s.account, nil
		})
		return err
	case intent:
		return c.manager.RecordPullIntent(logger, s.image)
	case pulled:
		c.manager.RecordImagePulled(ctx, s.image, s.ref, s.credentials.DeepCopy())
	case failed:
		if s.cancelled {
			cancelled, cancel := context.WithCancel(ctx)
			cancel()
			ctx = cancelled
		}
		c.manager.RecordImagePullFailed(ctx, s.image)
	case prune:
		c.manager.PruneUnknownRecords(ctx, s.listed, time.Now().Add(-s.untilAgo))
	case restart:
		if s.noList {
			c.runtime.err = errors.New("the runtime is away")
		}
		return c.start(c, s)
	case writeRecord:
		return c.accessor.WriteImagePulledRecord(logger, s.record(time.Now()))
	case deleteRecord:
		return c.accessor.DeleteImagePulledRecord(logger, s.ref)
	case writeIntent:
		return c.accessor.WriteImagePullIntent(logger, s.image)
	case deleteIntent:
		return c.accessor.DeleteImagePullIntent(logger, s.image)
	}
	return nil
}

// state is everything that is stored, by identity, in a comparable form.
type state struct {
	records map[string]string
	intents map[string]string
}

func (c *contender) state(withTimes bool) (state, error) {
	stored := state{records: map[string]string{}, intents: map[string]string{}}
	if c.store != nil { // decisions see what is queued, lists what is on disk
		if err := c.store.Flush(quiet); err != nil {
			return stored, err
		}
	}
	records, err := c.accessor.ListImagePulledRecords()
	if err != nil {
		return stored, err
	}
	for _, record := range records {
		stored.records[record.ImageRef] = describe(record, withTimes)
	}
	intents, err := c.accessor.ListImagePullIntents()
	for _, intent := range intents {
		stored.intents[intent.Image] = "there"
	}
	return stored, err
}

func describe(record *kubeletconfig.ImagePulledRecord, withTime bool) string {
	var text strings.Builder
	if withTime {
		fmt.Fprintf(&text, "%v ", record.LastUpdatedTime.UTC().Format(time.RFC3339Nano))
	}
	for _, name := range slices.Sorted(maps.Keys(record.CredentialMapping)) {
		credentials := record.CredentialMapping[name]
		fmt.Fprintf(&text, "%q: %t %q %q; ", name, credentials.NodePodsAccessible, credentials.KubernetesSecrets, credentials.KubernetesServiceAccounts)
	}
	return text.String()
}

// differingKeys returns the keys whose values differ between a and b, sorted.
func differingKeys(a, b map[string]string) []string {
	all := maps.Clone(a)
	maps.Copy(all, b)
	maps.DeleteFunc(all, func(key, _ string) bool {
		inA, ok := a[key]
		inB, there := b[key]
		return ok == there && inA == inB
	})
	return slices.Sorted(maps.Keys(all))
}

// normalised is the full form by the library that the kubelet and the runtimes use, or the string
// itself if it has none.
func normalised(image string) string {
	named, err := reference.ParseNormalizedNamed(image)
	if err != nil {
		return image
	}
	return reference.TagNameOnly(named).String()
}

// repository is what images under any tag and digest share.
func repository(image string) string {
	if named, err := reference.ParseNormalizedNamed(image); err == nil {
		return named.Name()
	}
	if parsed, err := reference.Parse(image); err == nil {
		if named, ok := parsed.(reference.Named); ok {
			return named.Name()
		}
	}
	return image
}

// scratchDir is in memory if the machine has a file system there.
func scratchDir(tb testing.TB) string {
	tb.Helper()
	if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() {
		if directory, err := os.MkdirTemp("/dev/shm", "waybill-kubelet-"); err == nil {
			tb.Cleanup(func() { os.RemoveAll(directory) })
			return directory
		}
	}
	return filepath.Clean(tb.TempDir())
}
