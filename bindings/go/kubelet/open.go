package kubelet

import (
	"context"
	"fmt"
	"path/filepath"

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
	// Asked for the images on the node, once.
	ImageService kubecontainer.ImageService
	// How long a pull that ended may still have brought an image, and what short names may name: with
	// containerd waybill.ShortNamesDockerHub.
	Evidence waybill.Evidence
	// What was preloaded, by an installer's list; counts at the first start. nil: unknown.
	Preloaded []waybill.ImageOnNode
	// How long what a pull proved counts; nil: as the store remembers, at first for ever.
	Ages *waybill.AgeLimits
	// What UserNamespacesOf returns; nil: the default pool.
	UserNamespaces *waybill.UserNamespaceOptions
	// Without the socket owner.sock in Directory, by which the command waybill asks this kubelet for
	// what only it may do while it runs: prune, preload, drop pulls, clear distrust, make backups.
	NoSocket bool
	// How the socket is served, if it is.
	Serve waybill.ServeOptions
}

// OpenStore opens a kubelet's store, as a restart: pulls of the kubelet before it have ended, how is
// unknown. If the runtime can't list its images, or under waybill.RulesClosed lists none, nothing is
// replayed or judged now; the image pull manager's first list makes up for it.
func OpenStore(ctx context.Context, setup Setup) (*waybill.Store, error) {
	if setup.ImageService == nil {
		return nil, fmt.Errorf("open a waybill store in %s: the image service is nil", setup.Directory)
	}
	records := utilfeature.DefaultFeatureGate.Enabled(features.KubeletEnsureSecretPulledImages)
	var policy *waybill.VerificationPolicy
	if records { // otherwise the kubelet's configuration must not have one
		var err error
		if policy, err = VerificationPolicy(setup.VerificationPolicy, setup.Allowlist); err != nil {
			return nil, err
		}
	}
	options := waybill.Options{
		Directory:        setup.Directory,
		Witness:          waybill.WitnessAt(filepath.Join(setup.KubeletDirectory, "image_manager", "waybill")),
		Rules:            setup.Rules,
		Policy:           policy,
		KubeletDirectory: setup.KubeletDirectory,
		UserNamespaces:   setup.UserNamespaces,
		Evidence:         setup.Evidence,
		Preloaded:        setup.Preloaded,
		Ages:             setup.Ages,
	}
	logger := klog.FromContext(ctx)
	if !records {
		// Without the list the gap stays open until a start that has one.
		logger.Info("the feature gate is off: pulls are not recorded, and what they bring is closed once it is on", "featureGate", features.KubeletEnsureSecretPulledImages)
		options.Gap = waybill.GapYes
	} else if images, err := setup.ImageService.ListImages(ctx); err != nil {
		logger.Error(err, "failed to list images")
	} else {
		options.ImagesOnNode = ImagesOnNode(images)
		if len(images) == 0 && setup.Rules != waybill.RulesKubelet {
			// A runtime that starts up lists no images either.
			logger.Info("the runtime lists no images, none is judged")
			options.ImagesOnNode = nil
		}
		options.AllowEmpty = true // as in the kubelet
	}
	store, err := waybill.Open(ctx, options)
	if err != nil {
		return nil, fmt.Errorf("open the waybill store in %s: %w", setup.Directory, err)
	}
	if !setup.NoSocket {
		// A kubelet goes on without it.
		if err := store.Serve(setup.Serve); err != nil {
			logger.Error(err, "the waybill store takes no requests", "directory", setup.Directory)
		}
	}
	return store, nil
}

// EvidenceOf returns the evidence that fits a runtime, by the name that its version says: containerd
// completes short names with docker.io only.
func EvidenceOf(runtimeName string) waybill.Evidence {
	if runtimeName == "containerd" {
		return waybill.Evidence{ShortNames: waybill.ShortNamesDockerHub}
	}
	return waybill.Evidence{}
}
