package kubelet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/features"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	"waybill.dev/go"
)

// Setup is what a kubelet has where it makes its image pull manager.
type Setup struct {
	// The store's own directory.
	Directory string
	// The kubelet's root directory: its image_manager/ is taken over, and holds the store's witness.
	KubeletDirectory string
	Rules            waybill.Rules
	// The kubelet's configuration, as VerificationPolicy takes it.
	VerificationPolicy kubeletconfig.ImagePullCredentialsVerificationPolicy
	Allowlist          []string
	// Whose proofs count, by image; empty: anybody's, as in a kubelet.
	Proofs []waybill.ProofRule
	// Asked for the images on the node, once for each attempt to open. ForAccessor: not asked.
	ImageService kubecontainer.ImageService
	// The store is for NewRecordsAccessor, not for NewImagePullManager: the kubelet's own manager judges
	// and replays, so the rules are waybill.RulesKubelet, and nothing is judged or replayed here.
	ForAccessor bool
	// How long a pull stays open after it ended, and what short names may name: with containerd
	// waybill.ShortNamesDockerHub.
	Evidence waybill.Evidence
	// Which images were preloaded, by an installer's list; counts at the first start. nil: unknown.
	Preloaded []waybill.ImageOnNode
	// What becomes of the other unrecorded images that are on the node at the first start.
	FirstStart waybill.FirstStart
	// Whether images may have been pulled unrecorded before. With the feature gate
	// KubeletEnsureSecretPulledImages off the kubelet records no pulls, and it is waybill.GapYes.
	Gap waybill.Gap
	// How long proofs count; nil: as the store remembers, at first for ever.
	Ages *waybill.AgeLimits
	// What UserNamespacesOf returns; nil: the default pool.
	UserNamespaces *waybill.UserNamespaceOptions
	// What RuntimeHandlers makes of the runtime's status, if it is known already; nil: as the store
	// remembers them.
	RuntimeHandlers []waybill.RuntimeHandler
	MapBytes        uint64               // the bound of the store's size; 0: as the store remembers it
	Trace           *waybill.Trace       // of what this kubelet does, for whoever plans capacity; nil: none
	Clock           *waybill.ManualClock // nil: the system's
	// How long to wait for a kubelet that still has the store; 0: 10 seconds, negative: not at all.
	OwnerWait time.Duration
	// Without the socket owner.sock in Directory, by which the command waybill asks this kubelet for
	// what only it may do while it runs: prune, preload, drop pulls, clear distrust, make backups.
	NoSocket bool
	// How the socket is served, if it is.
	Serve waybill.ServeOptions
}

const (
	defaultOwnerWait = 10 * time.Second
	// Between two attempts to open, at first and at most.
	firstOwnerPause, lastOwnerPause = 50 * time.Millisecond, time.Second
)

// OpenStore opens a kubelet's store, as a restart: pulls of the kubelet before it count as ended,
// with an unknown outcome. If the runtime can't list its images, or under waybill.RulesClosed lists
// none, nothing is replayed or judged now; the image pull manager's first list makes up for it.
// What opening found is logged. While the kubelet before still has the store, opening is tried
// again for Setup.OwnerWait.
//
// The store is also needed with the feature gate KubeletEnsureSecretPulledImages off, for the user
// namespaces. Until a start with the gate on, and the runtime's list, it then counts as one with a gap.
func OpenStore(ctx context.Context, setup Setup) (*waybill.Store, error) {
	failed := func(err error) (*waybill.Store, error) {
		return nil, fmt.Errorf("open the waybill store in %s: %w", setup.Directory, err)
	}
	options, err := setup.options()
	if err != nil {
		return failed(err)
	}
	logger := klog.LoggerWithValues(klog.FromContext(ctx), "directory", setup.Directory)
	records := utilfeature.DefaultFeatureGate.Enabled(features.KubeletEnsureSecretPulledImages)
	if !records {
		logger.Info("The feature gate is off: no pull is recorded, and what is pulled meanwhile stays closed once it is on", "featureGate", features.KubeletEnsureSecretPulledImages)
		options.Gap = waybill.GapYes
	}
	if !setup.ForAccessor && lostAll(options) {
		logger.Info("waybill was used on this kubelet's directory before, and neither its store nor its witness is left: images that nobody knows are closed, and no first start presumes them. If it was emptied on purpose, open them by `waybill allow IMAGE`", "kubeletDirectory", options.KubeletDirectory)
		options.Gap = waybill.GapYes
	}
	wait, cancel := context.WithTimeout(ctx, cmp.Or(setup.OwnerWait, defaultOwnerWait))
	defer cancel()
	var store *waybill.Store
	for pause := firstOwnerPause; ; pause = min(2*pause, lastOwnerPause) {
		if records && !setup.ForAccessor { // without the list a gap stays open
			// Anew each time: the other kubelet may have pulled.
			setup.list(ctx, logger, &options)
		}
		if store, err = waybill.Open(ctx, options); !errors.Is(err, waybill.ErrOwned) {
			break
		}
		if wait.Err() == nil {
			logger.Info("Waiting for the process that has the waybill store", "err", err)
		}
		select {
		case <-time.After(pause):
		case <-wait.Done():
			return failed(errors.Join(err, ctx.Err()))
		}
	}
	if err != nil {
		return failed(err)
	}
	_ = syscall.Setxattr(options.KubeletDirectory, wasHere, nil, 0)
	logRecovery(logger, store.RecoveryReport())
	if presumed := store.Metrics().PresumedImages; presumed > 0 {
		logger.Info("Images are presumed preloaded, since they were there at the first start. `waybill preload confirm` and `close` settle them", "images", presumed)
	}
	if !setup.NoSocket {
		// A kubelet runs without the socket, too.
		if err := store.Serve(setup.Serve); err != nil {
			logger.Error(err, "The waybill store takes no requests")
		}
	}
	return store, nil
}

// wasHere is an attribute of a kubelet's directory that says that waybill was used there. Its value
// is "lost" from the moment that nothing else was found until a store knows that (kWasHere in
// guard/opening.cc). Not every file system has such attributes.
const wasHere = "user.waybill"

// lostAll says whether only that attribute is left of what waybill had there.
func lostAll(options waybill.Options) bool {
	value := make([]byte, 4)
	n, err := syscall.Getxattr(options.KubeletDirectory, wasHere, value)
	if err != nil {
		return false
	}
	if string(value[:n]) == "lost" {
		return true
	}
	for _, left := range []string{
		filepath.Join(options.Directory, "data.mdb"),
		filepath.Join(options.KubeletDirectory, "image_manager", "waybill"),
		filepath.Join(options.KubeletDirectory, "image_manager", "waybill-guard"),
	} {
		if _, err := os.Lstat(left); !errors.Is(err, fs.ErrNotExist) {
			return false
		}
	}
	_ = syscall.Setxattr(options.KubeletDirectory, wasHere, []byte("lost"), 0)
	return true
}

// options returns those that do not depend on the runtime's list.
func (s *Setup) options() (waybill.Options, error) {
	options := waybill.Options{
		Rules:           s.Rules,
		UserNamespaces:  s.UserNamespaces,
		RuntimeHandlers: s.RuntimeHandlers,
		Evidence:        s.Evidence,
		Preloaded:       s.Preloaded,
		FirstStart:      s.FirstStart,
		Gap:             s.Gap,
		Ages:            s.Ages,
		MapBytes:        s.MapBytes,
		Trace:           s.Trace,
		Clock:           s.Clock,
	}
	var err error
	if options.Directory, err = filepath.Abs(s.Directory); err != nil {
		return options, err
	}
	if options.KubeletDirectory, err = filepath.Abs(s.KubeletDirectory); err != nil {
		return options, err
	}
	options.Witness = waybill.WitnessAt(filepath.Join(options.KubeletDirectory, "image_manager", "waybill"))
	if s.ForAccessor {
		options.Rules = waybill.RulesKubelet
		return options, nil
	}
	if s.ImageService == nil {
		return options, errors.New("the image service is nil")
	}
	// With the gate off the kubelet's configuration must not have a policy.
	if utilfeature.DefaultFeatureGate.Enabled(features.KubeletEnsureSecretPulledImages) {
		if options.Policy, err = VerificationPolicy(s.VerificationPolicy, s.Allowlist); err == nil && len(s.Proofs) > 0 {
			options.Policy, err = options.Policy.WithProofs(s.Proofs...)
		}
	}
	return options, err
}

// list asks the runtime.
func (s *Setup) list(ctx context.Context, logger klog.Logger, options *waybill.Options) {
	options.ImagesOnNode, options.AllowEmpty = nil, true // as in the kubelet
	images, err := s.ImageService.ListImages(ctx)
	switch {
	case err != nil:
		logger.Error(err, "Failed to list images")
	case len(images) == 0 && s.Rules != waybill.RulesKubelet:
		// A runtime that starts up lists no images either.
		logger.Info("The runtime lists no images, none is judged")
	default:
		options.ImagesOnNode = ImagesOnNode(images)
	}
}

// EvidenceOf returns the evidence that fits a runtime, by the name that its version says: containerd
// completes short names with docker.io only.
func EvidenceOf(runtimeName string) waybill.Evidence {
	if runtimeName == "containerd" {
		return waybill.Evidence{ShortNames: waybill.ShortNamesDockerHub}
	}
	return waybill.Evidence{}
}
