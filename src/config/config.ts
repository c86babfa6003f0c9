/** The checked settings of a process (load-config.ts makes them). Each group of settings has a file in settings/. */
import type { AdmissionSettings } from './settings/admission.ts';
import type { BuyersSettings } from './settings/buyers.ts';
import type { EventsSettings } from './settings/events.ts';
import type { LimitsSettings } from './settings/limits.ts';
import type { ListeningSettings } from './settings/listening.ts';
import type { OperatorsSettings } from './settings/operators.ts';
import type { ProcessSettings } from './settings/process.ts';
import type { StoresSettings } from './settings/stores.ts';
import type { SyncSettings } from './settings/sync.ts';
import type { TracesSettings } from './settings/traces.ts';

export interface Config
  extends StoresSettings,
    ListeningSettings,
    BuyersSettings,
    AdmissionSettings,
    OperatorsSettings,
    LimitsSettings,
    SyncSettings,
    EventsSettings,
    ProcessSettings,
    TracesSettings {}
