// Package change puts waybill into the sources of a kubelet. It replaces texts that it knows, and refuses
// sources that have others there; what it does not look at, the compiler does.
package change

import (
	"fmt"
	"go/format"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Replacement is of a text that stands in its file once. What is between « and » is in releases whose
// methods take a logger: 1.36 and newer.
type Replacement struct{ Old, New string }

// Replacements are the whole change, by the paths of the files below the module k8s.io/kubernetes.
var Replacements = map[string][]Replacement{
	// NewKubeGenericRuntimeManager gets the pool of host IDs, and returns the store. With the feature gate
	// off, too: the user namespaces are in it.
	"pkg/kubelet/kuberuntime/kuberuntime_manager.go": {
		{`	"k8s.io/utils/ptr"
`, `	"waybill.dev/go"
	waybillkubelet "waybill.dev/go/kubelet"
	waybillstore "waybill.dev/go/store"
`},
		{`) (KubeGenericRuntime, []images.PostImageGCHook, error) {
`, `	userNamespaces waybill.Pool,
) (KubeGenericRuntime, []images.PostImageGCHook, *waybillstore.Store, error) {
`},
		{`		logger.Error(err, "Get runtime version failed")
		return nil, nil, err
`, `		logger.Error(err, "Get runtime version failed")
		return nil, nil, nil, err
`},
		{`		return nil, nil, ErrVersionNotSupported
`, `		return nil, nil, nil, ErrVersionNotSupported
`},
		// No cache to size, and no set of locks: a decision reads the store in place.
		{`	if utilfeature.DefaultFeatureGate.Enabled(features.KubeletEnsureSecretPulledImages) {
		imagePullCredentialsVerificationPolicy, err := imagepullmanager.NewImagePullCredentialVerificationPolicy(
			kubeletconfiginternal.ImagePullCredentialsVerificationPolicy(imagePullsCredentialVerificationPolicy),
			preloadedImagesCredentialVerificationWhitelist)

		if err != nil {
			return nil, nil, err
		}

		fsRecordAccessor, err := imagepullmanager.NewFSPullRecordsAccessor(«logger, »rootDirectory)
		if err != nil {
			return nil, nil, fmt.Errorf("failed to setup the FSPullRecordsAccessor: %w", err)
		}

		var ( // variables used to determine cache/lock set sizes
			maxParallelPulls     = ptr.Deref(maxParallelImagePulls, 0)
			intentCacheSize      = max(2*maxPods, 2*maxParallelPulls)
			pullRecordsCacheSize = 5 * maxPods
		)

		memCacheRecordsAccessor := imagepullmanager.NewCachedPullRecordsAccessor(«logger, »fsRecordAccessor, intentCacheSize, pullRecordsCacheSize, maxParallelPulls)

		imagePullManager, err = imagepullmanager.NewImagePullManager(ctx, memCacheRecordsAccessor, imagePullCredentialsVerificationPolicy, kubeRuntimeManager, maxParallelPulls)
		if err != nil {
			return nil, nil, fmt.Errorf("failed to create image pull manager: %w", err)
		}
`, `	waybillStore, err := waybillkubelet.OpenStore(ctx, waybillkubelet.Setup{
		Directory:          filepath.Join(rootDirectory, "waybill"),
		KubeletDirectory:   rootDirectory,
		VerificationPolicy: kubeletconfiginternal.ImagePullCredentialsVerificationPolicy(imagePullsCredentialVerificationPolicy),
		Allowlist:          preloadedImagesCredentialVerificationWhitelist,
		ImageService:       kubeRuntimeManager,
		Settings:           waybill.Settings{Pool: userNamespaces, ShortNamesAnywhere: waybillkubelet.ShortNamesAnywhere(kubeRuntimeManager.runtimeName)},
	})
	if err != nil {
		return nil, nil, nil, err
	}
	if utilfeature.DefaultFeatureGate.Enabled(features.KubeletEnsureSecretPulledImages) {
		imagePullManager, err = waybillkubelet.NewImagePullManager(waybillStore, kubeRuntimeManager,
			waybillkubelet.CheckersOf(kubeRuntimeManager.runtimeName))
		if err != nil {
			return nil, nil, nil, fmt.Errorf("failed to create image pull manager: %w", err)
		}
`},
		{`«		return nil, nil, fmt.Errorf("failed to initialize actuated state checkpoint: %w", err)
	}

»	return kubeRuntimeManager, imageGCHooks, nil
`, `«		return nil, nil, nil, fmt.Errorf("failed to initialize actuated state checkpoint: %w", err)
	}

»	return kubeRuntimeManager, imageGCHooks, waybillStore, nil
`},
	},
	// NewMainKubelet asks for the pool first, and takes the store.
	"pkg/kubelet/kubelet.go": {
		{`	"k8s.io/kubernetes/pkg/kubelet/userns"
`, `	waybillkubelet "waybill.dev/go/kubelet"
`},
		{`	runtime, postImageGCHooks, err := kuberuntime.NewKubeGenericRuntimeManager(
		ctx,
`, `	var usernsIDsPerPod *int64
	if kubeCfg.UserNamespaces != nil {
		usernsIDsPerPod = kubeCfg.UserNamespaces.IDsPerPod
	}
	userNamespaces, err := waybillkubelet.UserNamespacesOf(logger, klet, usernsIDsPerPod)
	if err != nil {
		return nil, err
	}

	runtime, postImageGCHooks, waybillStore, err := kuberuntime.NewKubeGenericRuntimeManager(
		ctx,
`},
		{`	)
	if err != nil {
		return nil, err
	}
	klet.containerRuntime = runtime
`, `		userNamespaces,
	)
	if err != nil {
		return nil, err
	}
	klet.containerRuntime = runtime
`},
		{`	var usernsIDsPerPod *int64
	if kubeCfg.UserNamespaces != nil {
		usernsIDsPerPod = kubeCfg.UserNamespaces.IDsPerPod
	}
	klet.usernsManager, err = userns.MakeUserNsManager(logger, klet, usernsIDsPerPod)
`, `	klet.usernsManager, err = waybillkubelet.MakeUsernsManager(logger, waybillStore, klet)
`},
		{`	usernsManager *userns.UsernsManager
`, `	usernsManager waybillkubelet.UserNamespaceManager
`},
	},
	// pullImage has a context that says which of several pulls of one string ends, and what it showed.
	"pkg/kubelet/images/image_manager.go": {
		{`import (
`, `import (
	waybillkubelet "waybill.dev/go/kubelet"

`},
		{`«	logger := klog.FromContext(ctx)
»	var pullSucceeded bool
`, `«	logger := klog.FromContext(ctx)
	_ = logger // not each release has another use of it
»	var pullSucceeded bool
`},
		{`		if err := m.imagePullManager.RecordPullIntent(«logger, »image); err != nil {
`, `		if ctx, err = waybillkubelet.RecordPullIntent(ctx, m.imagePullManager, image); err != nil {
`},
		// Its end is recorded with the variable that changes.
		{`				m.imagePullManager.RecordImagePulled(ctx, image, imageRef, trackedToImagePullCreds(finalPullCredentials))
			} else {
				m.imagePullManager.RecordImagePullFailed(ctx, image)
`, `				m.imagePullManager.RecordImagePulled(ctx, image, imageRef, trackedToImagePullCreds(finalPullCredentials))
			} else {
				m.imagePullManager.RecordImagePullFailed(ctx, image)
`},
		{`	imagePullResult := <-pullChan
`, `	imagePullResult := <-pullChan
	ctx = waybillkubelet.WithPulledCredential(ctx, m.imagePullManager, imgSpec.RuntimeHandler, imagePullResult.credentialsUsed)
`},
	},
}

// Sources returns the changed files of the module k8s.io/kubernetes in `module`, by their paths below it.
func Sources(module string) (map[string][]byte, error) {
	changed := map[string][]byte{}
	for path, replacements := range Replacements {
		text, err := os.ReadFile(filepath.Join(module, filepath.FromSlash(path)))
		if err != nil {
			return nil, fmt.Errorf("read the kubelet's sources: %w", err)
		}
		if changed[path], err = apply(string(text), replacements); err != nil {
			return nil, fmt.Errorf("%s is not as expected, and was not changed: %w", filepath.Join(module, path), err)
		}
	}
	return changed, nil
}

func apply(text string, replacements []Replacement) ([]byte, error) {
	with, without := strings.NewReplacer("«", "", "»", "").Replace, regexp.MustCompile(`(?s)«.*?»`)
	for _, r := range replacements {
		before, after := with(r.Old), with(r.New)
		if !strings.Contains(text, before) {
			before, after = without.ReplaceAllString(r.Old, ""), without.ReplaceAllString(r.New, "")
		}
		if found := strings.Count(text, before); found != 1 {
			return nil, fmt.Errorf("expected once, and found %d times:\n%s", found, with(r.Old))
		}
		text = strings.Replace(text, before, after, 1)
	}
	return format.Source([]byte(text))
}
