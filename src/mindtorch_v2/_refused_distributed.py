"""Modules below torch.distributed that can do nothing here, by their path: the reason, functions, classes. See `_refused`."""

from __future__ import annotations

_CALLS = "no function is called in another process. Use collectives and messages of torch.distributed"
_FLIGHT = (
    "there is no flight recorder. torch.profiler records collectives, with those that have not ended; mtprof ranks reads them"
)
_LAUNCHER = (
    "parts of torch's launcher are not there. Start processes with torchrun, or torch.distributed.launcher.api.elastic_launch"
)
_PLANS = "checkpoints are planned and stored in one way. Use torch.distributed.checkpoint.save and load"
_STAGES = "a model is not cut into stages. Use DistributedDataParallel or fully_shard"
_SHARDED_OPS = "ops on shards give plain tensors: modules are not cut along dims. Use fully_shard"
_FUNCTIONAL = "optimizers are objects. Use torch.optim, or ZeroRedundancyOptimizer"
_HOOKS = "gradients are sent whole, in 16 bits or by PowerSGD. Use these hooks of torch.distributed.algorithms.ddp_comm_hooks"
_OTHER = "it serves parts of torch.distributed that are not there"

Names = tuple[str] | tuple[str, str] | tuple[str, str, str]

MODULES: dict[str, Names] = {
    "distributed.algorithms.ddp_comm_hooks.ddp_zero_hook": (
        _HOOKS,
        "hook_with_zero_step hook_with_zero_step_interleaved",
    ),
    "distributed.algorithms.ddp_comm_hooks.quantization_hooks": (
        _HOOKS,
        "quantization_perchannel_hook quantization_pertensor_hook",
    ),
    "distributed.algorithms.model_averaging.hierarchical_model_averager": (
        _HOOKS,
        "",
        "HierarchicalModelAverager",
    ),
    "distributed.checkpoint.planner": (
        _PLANS,
        "",
        "BytesIOWriteData LoadItemType LoadPlan LoadPlanner ReadItem SavePlan SavePlanner TensorWriteData "
        "WriteItem WriteItemType",
    ),
    "distributed.checkpoint.planner_helpers": (
        _PLANS,
        "create_read_items_for_chunk_list",
    ),
    "distributed.checkpoint.quantized_hf_storage": (
        _PLANS,
        "",
        "QuantizedHuggingFaceStorageReader",
    ),
    "distributed.checkpoint.staging": (
        _PLANS,
        "",
        "AsyncStager BlockingAsyncStager DefaultStager StagingOptions",
    ),
    "distributed.checkpoint.storage": (
        _PLANS,
        "",
        "StorageReader StorageWriter WriteResult",
    ),
    "distributed.checkpoint.utils": (
        _PLANS,
        "find_state_dict_object find_tensor_shard",
    ),
    "distributed.debug": (
        _FLIGHT,
        "get_rank start_debug_server stop_debug_server tcpstore_client",
    ),
    "distributed.elastic.agent": (_LAUNCHER,),
    "distributed.elastic.agent.server": (
        _LAUNCHER,
        "",
        "ElasticAgent RunResult SimpleElasticAgent Worker WorkerGroup WorkerSpec WorkerState",
    ),
    "distributed.elastic.agent.server.api": (
        _LAUNCHER,
        "",
        "ElasticAgent RunResult SimpleElasticAgent Worker WorkerGroup WorkerSpec WorkerState",
    ),
    "distributed.elastic.agent.server.health_check_server": (
        _LAUNCHER,
        "create_healthcheck_server",
        "HealthCheckServer",
    ),
    "distributed.elastic.agent.server.local_elastic_agent": (
        _LAUNCHER,
        "",
        "LocalElasticAgent TORCHELASTIC_ENABLE_FILE_TIMER TORCHELASTIC_HEALTH_CHECK_PORT TORCHELASTIC_TIMER_FILE "
        "TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT",
    ),
    "distributed.elastic.control_plane": (
        _LAUNCHER,
        "worker_main",
    ),
    "distributed.elastic.events": (
        _LAUNCHER,
        "construct_and_record_rdzv_event get_logging_handler record record_rdzv_event",
        "Event EventSource NodeState RdzvEvent",
    ),
    "distributed.elastic.events.api": (
        _LAUNCHER,
        "",
        "Event EventSource NodeState RdzvEvent",
    ),
    "distributed.elastic.events.handlers": (
        _LAUNCHER,
        "get_logging_handler",
    ),
    "distributed.elastic.metrics": (
        _LAUNCHER,
        "configure getStream get_elapsed_time_ms initialize_metrics prof profile publish_metric put_metric",
        "ConsoleMetricHandler MetricData MetricHandler MetricsConfig NullMetricHandler",
    ),
    "distributed.elastic.metrics.api": (
        _LAUNCHER,
        "configure getStream get_elapsed_time_ms prof profile publish_metric put_metric",
        "ConsoleMetricHandler MetricData MetricHandler MetricStream MetricsConfig NullMetricHandler",
    ),
    "distributed.elastic.multiprocessing.api": (
        _LAUNCHER,
        "get_std_cm to_map",
        "DefaultLogsSpecs LogsDest LogsSpecs MultiprocessContext PContext RunProcsResult SignalException Std SubprocessContext",
    ),
    "distributed.elastic.multiprocessing.errors.error_handler": (
        _LAUNCHER,
        "",
        "ErrorHandler",
    ),
    "distributed.elastic.multiprocessing.errors.handlers": (
        _LAUNCHER,
        "get_error_handler",
    ),
    "distributed.elastic.multiprocessing.redirects": (
        _LAUNCHER,
        "get_libc redirect",
    ),
    "distributed.elastic.multiprocessing.subprocess_handler": (
        _LAUNCHER,
        "get_subprocess_handler",
        "SubprocessHandler",
    ),
    "distributed.elastic.multiprocessing.subprocess_handler.handlers": (
        _LAUNCHER,
        "get_subprocess_handler",
    ),
    "distributed.elastic.multiprocessing.subprocess_handler.subprocess_handler": (
        _LAUNCHER,
        "",
        "SubprocessHandler",
    ),
    "distributed.elastic.multiprocessing.tail_log": (
        _LAUNCHER,
        "tail_logfile",
        "TailLog",
    ),
    "distributed.elastic.rendezvous": (
        _LAUNCHER,
        "",
        "RendezvousClosedError RendezvousConnectionError RendezvousError RendezvousGracefulExitError "
        "RendezvousHandler RendezvousHandlerCreator RendezvousHandlerRegistry RendezvousInfo RendezvousParameters "
        "RendezvousStateError RendezvousStoreInfo RendezvousTimeoutError rendezvous_handler_registry",
    ),
    "distributed.elastic.rendezvous.api": (
        _LAUNCHER,
        "",
        "RendezvousClosedError RendezvousConnectionError RendezvousError RendezvousGracefulExitError "
        "RendezvousHandler RendezvousHandlerCreator RendezvousHandlerRegistry RendezvousInfo RendezvousParameters "
        "RendezvousStateError RendezvousStoreInfo RendezvousTimeoutError rendezvous_handler_registry",
    ),
    "distributed.elastic.rendezvous.c10d_rendezvous_backend": (
        _LAUNCHER,
        "create_backend",
        "C10dRendezvousBackend",
    ),
    "distributed.elastic.rendezvous.dynamic_rendezvous": (
        _LAUNCHER,
        "create_handler get_method_name",
        "DynamicRendezvousHandler RendezvousBackend RendezvousSettings RendezvousTimeout",
    ),
    "distributed.elastic.rendezvous.etcd_rendezvous": (
        _LAUNCHER,
        "create_rdzv_handler",
        "EtcdRendezvous EtcdRendezvousHandler EtcdRendezvousRetryImmediately EtcdRendezvousRetryableFailure",
    ),
    "distributed.elastic.rendezvous.etcd_server": (
        _LAUNCHER,
        "find_free_port stop_etcd",
        "EtcdServer",
    ),
    "distributed.elastic.rendezvous.etcd_store": (
        _LAUNCHER,
        "cas_delay",
        "EtcdStore",
    ),
    "distributed.elastic.rendezvous.registry": (
        _LAUNCHER,
        "get_rendezvous_handler",
    ),
    "distributed.elastic.rendezvous.static_tcp_rendezvous": (
        _LAUNCHER,
        "create_rdzv_handler",
        "StaticTCPRendezvous",
    ),
    "distributed.elastic.rendezvous.utils": (
        _LAUNCHER,
        "parse_rendezvous_endpoint",
    ),
    "distributed.elastic.timer": (
        _LAUNCHER,
        "configure expires",
        "FileTimerClient FileTimerRequest FileTimerServer LocalTimerClient LocalTimerServer TimerClient "
        "TimerRequest TimerServer",
    ),
    "distributed.elastic.timer.api": (
        _LAUNCHER,
        "configure expires",
        "RequestQueue TimerClient TimerRequest TimerServer",
    ),
    "distributed.elastic.timer.debug_info_logging": (
        _LAUNCHER,
        "log_debug_info_for_expired_timers",
    ),
    "distributed.elastic.timer.file_based_local_timer": (
        _LAUNCHER,
        "",
        "FileTimerClient FileTimerRequest FileTimerServer",
    ),
    "distributed.elastic.timer.local_timer": (
        _LAUNCHER,
        "",
        "LocalTimerClient LocalTimerServer MultiprocessingRequestQueue",
    ),
    "distributed.elastic.utils.process_state": (
        _LAUNCHER,
        "is_uninterruptible_state read_proc_state",
    ),
    "distributed.elastic.utils.store": (
        _LAUNCHER,
        "barrier get_all store_timeout synchronize",
    ),
    "distributed.flight_recorder": (_FLIGHT,),
    "distributed.flight_recorder.components": (_FLIGHT,),
    "distributed.flight_recorder.components.builder": (
        _FLIGHT,
        "build_collectives build_db build_groups_memberships tabulate transform_ft",
    ),
    "distributed.flight_recorder.components.config_manager": (
        _FLIGHT,
        "",
        "JobConfig",
    ),
    "distributed.flight_recorder.components.fr_logger": (
        _FLIGHT,
        "",
        "FlightRecorderLogger",
    ),
    "distributed.flight_recorder.components.loader": (
        _FLIGHT,
        "read_dir read_dump",
    ),
    "distributed.flight_recorder.components.types": (
        _FLIGHT,
        "",
        "Collective Database EntryState Group MatchInfo MatchState MatchStateRecord Membership NCCLCall Op Ref "
        "Traceback TypeInfo",
    ),
    "distributed.flight_recorder.components.utils": (
        _FLIGHT,
        "add_stack_id_in_entries align_trace_from_beginning check_current_entry_match check_no_missing_dump_files "
        "check_size_alltoall check_version error_analysis find_coalesced_group find_coalesced_group_with_non_p2p "
        "format_frame format_frames get_version_detail just_print_entries match_coalesced_groups "
        "match_coalesced_groups_with_non_p2p match_one_event",
    ),
    "distributed.flight_recorder.fr_trace": (
        _FLIGHT,
        "main",
    ),
    "distributed.nn.api": (_CALLS,),
    "distributed.nn.api.remote_module": (
        _CALLS,
        "",
        "RemoteModule",
    ),
    "distributed.nn.jit": (_CALLS,),
    "distributed.nn.jit.instantiator": (
        _CALLS,
        "get_arg_return_types_from_interface instantiate_non_scriptable_remote_module_template "
        "instantiate_scriptable_remote_module_template",
    ),
    "distributed.nn.jit.templates": (_CALLS,),
    "distributed.nn.jit.templates.remote_module_template": (
        _CALLS,
        "get_remote_module_template",
    ),
    "distributed.optim.optimizer": (
        _FUNCTIONAL,
        "",
        "DistributedOptimizer",
    ),
    "distributed.optim.utils": (
        _FUNCTIONAL,
        "as_functional_optim register_functional_optim",
    ),
    "distributed.pipelining.microbatch": (
        _STAGES,
        "merge_chunks split_args_kwargs_into_chunks",
        "TensorChunkSpec sum_reducer",
    ),
    "distributed.pipelining.schedules": (
        _STAGES,
        "get_schedule_class",
        "BACKWARD_INPUT BACKWARD_WEIGHT FORWARD FULL_BACKWARD OVERLAP_F_B PipelineScheduleMulti "
        "PipelineScheduleSingle RECV_B RECV_F REDUCE_GRAD RESHARD SEND_B SEND_F Schedule1F1B ScheduleDualPipeV "
        "ScheduleGPipe ScheduleInterleaved1F1B ScheduleInterleavedZeroBubble ScheduleLoopedBFS "
        "ScheduleZBVZeroBubble UNSHARD",
    ),
    "distributed.pipelining.stage": (
        _STAGES,
        "build_stage",
        "PipelineStage",
    ),
    "distributed.rpc.backend_registry": (
        _CALLS,
        "backend_registered construct_rpc_backend_options init_backend register_backend",
        "BackendType BackendValue",
    ),
    "distributed.rpc.functions": (
        _CALLS,
        "async_execution",
    ),
    "distributed.rpc.internal": (
        _CALLS,
        "deserialize serialize",
        "PythonUDF RPCExecMode RemoteException",
    ),
    "distributed.rpc.options": (
        _CALLS,
        "",
        "TensorPipeRpcBackendOptions",
    ),
    "distributed.rpc.rref_proxy": (
        _CALLS,
        "",
        "RRefProxy",
    ),
    "distributed.tensor.debug": (
        _SHARDED_OPS,
        "visualize_sharding",
        "CommDebugMode",
    ),
    "distributed.tensor.parallel.api": (
        _SHARDED_OPS,
        "parallelize_module",
    ),
    "distributed.tensor.parallel.fsdp": (
        _SHARDED_OPS,
        "",
        "DTensorExtensions",
    ),
    "distributed.tensor.parallel.input_reshard": (
        _SHARDED_OPS,
        "input_reshard",
    ),
    "distributed.tensor.parallel.loss": (
        _SHARDED_OPS,
        "loss_parallel",
    ),
    "distributed.tensor.parallel.style": (
        _SHARDED_OPS,
        "",
        "ColwiseParallel ParallelStyle PrepareModuleInput PrepareModuleInputOutput PrepareModuleOutput "
        "RowwiseParallel SequenceParallel",
    ),
}
