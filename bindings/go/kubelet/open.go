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
	"waybill.dev/go/store"
)

// Setup is what a kubelet has where it makes its image pull manager.
type Setup struct {
	// The store's own directory.
	Directory string
	// The kubelet's root directory: its image_manager/ is taken over, and holds the store's loss marker.
	KubeletDirectory string
	// Mode, pool, ages and the like. VerificationPolicy, Allowlist and RegistryOnly make the policy.
	Settings waybill.Settings
	// The kubelet's configuration, as VerificationPolicy takes it.
	VerificationPolicy kubeletconfig.ImagePullCredentialsVerificationPolicy
	Allowlist          []string
	// Image names, or prefixes that end in "/*", whose proofs count only if the registry checked them.
	RegistryOnly []string
	// Asked for the images on the node, once for each attempt to open. ForAccessor: not asked.
	ImageService kubecontainer.ImageService
	// The store is for NewRecordsAccessor, not for NewImagePullManager: the kubelet's own manager judges
	// and replays, so the mode is waybill.ModeKubelet, and nothing is judged or replayed here.
	ForAccessor bool
	Test        store.TestOptions
	// How long to wait for a kubelet that still has the store; 0: 10 seconds, negative: not at all.
	OwnerWait time.Duration
	// Without the socket owner.sock in Directory, by which the command waybill asks this kubelet for
	// what only it may do while it runs: prune, preload, drop pulls, clear distrust, make backups.
	NoSocket bool
}

const (
	defaultOwnerWait = 10 * time.Second
	// Between two attempts to open, at first and at most.
	firstOwnerPause, lastOwnerPause = 50 * time.Millisecond, time.Second
)

// OpenStore opens a kubelet's store, as a restart: pulls of the kubelet before it count as ended,
// with an unknown outcome. If the runtime can't list its images, or in mode strict lists
// none, nothing is replayed or judged now; the image pull manager's first list makes up for it.
// What opening found is logged. While the kubelet before still has the store, opening is tried
// again for Setup.OwnerWait.
//
// The store is also needed with the feature gate KubeletEnsureSecretPulledImages off, for the user
// namespaces. Until a start with the gate on, and the runtime's list, it then counts as one with a gap.
func OpenStore(ctx context.Context, setup Setup) (*store.Store, error) {
	failed := func(err error) (*store.Store, error) {
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
		options.Unrecorded = "yes"
	}
	if !setup.ForAccessor && lostAll(options) {
		logger.Info("waybill was used on this kubelet's directory before, and neither its store nor its loss marker is left: images that nobody knows are closed, and no first start presumes them. If it was emptied on purpose, open them by `waybill allow IMAGE`", "kubeletDirectory", options.KubeletDirectory)
		options.Unrecorded = "yes"
	}
	wait, cancel := context.WithTimeout(ctx, cmp.Or(setup.OwnerWait, defaultOwnerWait))
	defer cancel()
	var opened *store.Store
	for pause := firstOwnerPause; ; pause = min(2*pause, lastOwnerPause) {
		if records && !setup.ForAccessor { // without the list a gap stays open
			// Anew each time: the other kubelet may have pulled.
			setup.list(ctx, logger, &options)
		}
		if opened, err = store.Open(options); !errors.Is(err, waybill.ErrOwned) {
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
	logOpening(ctx, logger, opened)
	if !setup.NoSocket {
		// A kubelet runs without the socket, too.
		if err := opened.Serve(); err != nil {
			logger.Error(err, "The waybill store takes no requests")
		}
	}
	return opened, nil
}

// wasHere is an attribute of a kubelet's directory that says that waybill was used there. Its value
// is "lost" from the moment that nothing else was found until a store knows that (kWasHere in
// guard/opening.cc). Not every file system has such attributes.
const wasHere = "user.waybill"

// lostAll says whether only that attribute is left of what waybill had there.
func lostAll(options store.Options) bool {
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
func (s *Setup) options() (store.Options, error) {
	options := store.Options{
		Settings:    s.Settings,
		TestOptions: s.Test,
	}
	var err error
	if options.Directory, err = filepath.Abs(s.Directory); err != nil {
		return options, err
	}
	if options.KubeletDirectory, err = filepath.Abs(s.KubeletDirectory); err != nil {
		return options, err
	}
	options.LossMarker = filepath.Join(options.KubeletDirectory, "image_manager", "waybill")
	if s.ForAccessor {
		options.Settings.Mode = waybill.ModeKubelet
		return options, nil
	}
	if s.ImageService == nil {
		return options, errors.New("the image service is nil")
	}
	// With the gate off the kubelet's configuration must not have a policy.
	if utilfeature.DefaultFeatureGate.Enabled(features.KubeletEnsureSecretPulledImages) {
		options.Settings.Policy, err = VerificationPolicy(s.VerificationPolicy, s.Allowlist)
		options.Settings.Policy.RegistryOnly = s.RegistryOnly
	}
	return options, err
}

// list asks the runtime.
func (s *Setup) list(ctx context.Context, logger klog.Logger, options *store.Options) {
	options.Images, options.AllowEmpty = nil, true // as in the kubelet
	images, err := s.ImageService.ListImages(ctx)
	switch {
	case err != nil:
		logger.Error(err, "Failed to list images")
	case len(images) == 0 && s.Settings.Mode != waybill.ModeKubelet:
		// A runtime that starts up lists no images either.
		logger.Info("The runtime lists no images, none is judged")
	default:
		options.Images = ImagesOnNode(images)
	}
}

// ShortNamesAnywhere is for Settings, by the name that a runtime's version says: containerd completes
// short names with docker.io only.
func ShortNamesAnywhere(runtimeName string) *bool { return new(runtimeName != "containerd") }
