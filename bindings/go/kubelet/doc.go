// Package kubelet lets a kubelet keep its image pull records and its pods' user namespaces in a
// waybill store: adapters that satisfy the kubelet's own Go interfaces.
//
// The adapters are for k8s.io/kubernetes v1.36.3. They replace:
//
//	kubelet                                   here
//	pullmanager.NewFSPullRecordsAccessor      NewRecordsAccessor
//	pullmanager.NewImagePullManager           NewImagePullManager
//	userns.MakeUserNsManager                  MakeUsernsManager
//
// # Swapping in the image pull manager
//
// In pkg/kubelet/kuberuntime/kuberuntime_manager.go, NewKubeGenericRuntimeManager, the branch under
// the feature gate KubeletEnsureSecretPulledImages (lines 322 to 350) makes a policy, a file
// accessor, a cache in front of it and the pull manager. In their place:
//
//	store, err := waybillkubelet.OpenStore(ctx, waybillkubelet.Setup{
//		Directory:          filepath.Join(rootDirectory, "waybill"),
//		KubeletDirectory:   rootDirectory,
//		VerificationPolicy: imagePullsCredentialVerificationPolicy,
//		Allowlist:          preloadedImagesCredentialVerificationWhitelist,
//		ImageService:       kubeRuntimeManager,
//		// With containerd: short names are completed with docker.io only.
//		Evidence: waybill.Evidence{ShortNames: waybill.ShortNamesDockerHub},
//	})
//	if err != nil {
//		return nil, nil, err
//	}
//	imagePullManager, err = waybillkubelet.NewImagePullManager(store, kubeRuntimeManager)
//	if err != nil {
//		return nil, nil, err
//	}
//	imageGCHooks = append(imageGCHooks, imagePullManager.PruneUnknownRecords)
//
// No caller changes: images.NewImageManager takes the manager as an interface. Opening takes over what
// the kubelet's own manager left in image_manager/. There is no cache to size and no set of locks: a
// decision reads the store in place.
//
// The smallest change keeps the kubelet's own manager and swaps line 331 alone, with an open store:
//
//	fsRecordAccessor, err := waybillkubelet.NewRecordsAccessor(store)
//
// Pass it to NewImagePullManager without NewCachedPullRecordsAccessor. Records are then durable and
// survive a damaged disk, but the rules are the kubelet's.
//
// # Forgetting what is deleted
//
// A kubelet never learns that a Secret is gone. Where its operator grants the permission (see
// WatchCredentials: it is one to read every Secret), one call forgets at once what is deleted, and at
// its start what was deleted before:
//
//	client, err := metadata.NewForConfig(config)
//	if err != nil {
//		return err
//	}
//	go waybillkubelet.WatchCredentials(ctx, store, client)
//
// Informers that run anyway, of namespaces and service accounts only or of a part of the cluster, do
// for what is deleted while they run; they are never taken for the truth:
//
//	go waybillkubelet.ForgetDeleted(ctx, store, waybillkubelet.CredentialInformers{Namespaces: namespaces})
//
// Setup.Ages ends what a pull proved too long ago, without asking anybody.
//
// # Swapping in the user namespace manager
//
// In pkg/kubelet/kubelet.go, NewMainKubelet gets the pool before it calls NewKubeGenericRuntimeManager
// (line 773), which opens the store with it (Setup.UserNamespaces) and also returns the store:
//
//	userNamespaces, err := waybillkubelet.UserNamespacesOf(logger, klet, usernsIDsPerPod)
//
// The field usernsManager of Kubelet (line 1571) becomes a UserNamespaceManager, made from that store
// (line 1172):
//
//	klet.usernsManager, err = waybillkubelet.MakeUsernsManager(logger, store, klet)
//
// Its three callers stay as they are: Kubelet.GetOrCreateUserNamespaceMappings (kubelet_pods.go, line
// 575), HandlePodCleanups (kubelet_pods.go, line 1297) and SyncTerminatedPod (kubelet.go, line 2518).
// Opening takes over the mappings in the pods' directories.
//
// # Rules
//
// Under waybill.RulesKubelet every answer, metric label and stored state is the kubelet's own; the
// tests of this package compare them with the kubelet's code. Under waybill.RulesClosed, the default,
// an image is open because a credential was proven for it, or because it is known to have come to the
// node without the kubelet; that there is no record of it opens nothing. To know it, the image pull
// manager asks the runtime for its images: before its first pull, at each garbage collection, and if
// nothing is known of an image that a pod wants (at most once a second). After a pull that failed it
// asks whether the image is there.
//
// # Metrics
//
// Decisions are counted in the kubelet's own kubelet_imagemanager_image_mustpull_checks_total, and the
// gauges kubelet_imagemanager_ondisk_pullintents and _ondisk_pulledrecords are updated, so dashboards
// keep working. The two gauges of the in-memory cache stay 0: there is no cache. Beside them are the
// store's own metrics, waybill_…: monitoring/README.md has rules and a dashboard.
package kubelet
