import type { Caller } from '../core/call.ts'
import type { Reloaded } from '../reload/history.ts'
import type { ConfigView, ReloadEvent } from '../serve/admin/contract.ts'
import { reloadView } from './overview.ts'
import type { AdminParts } from './parts.ts'
import { recorded } from './recorded.ts'
import { shownConfig } from './shown-config.ts'

/** The configuration in force, and how it came to be. */
export interface Configuration {
  view(): ConfigView
  last(): ReloadEvent | undefined
  reload(caller: Caller): Promise<ReloadEvent>
  onReload(listener: (event: ReloadEvent) => void): Disposable
}

export function createConfiguration(parts: AdminParts): Configuration {
  const { present, reload, audit, clock } = parts
  const { history } = reload

  /** What is wrong with a file may quote it. */
  const shown = ({ error, changes, ...event }: Reloaded): ReloadEvent => {
    const { text } = present().redactor
    return { ...event, error: error === null ? null : text(error), changes: changes.map(text) }
  }

  const last = (): ReloadEvent | undefined => history.events[0] && shown(history.events[0])

  return {
    view() {
      const { loaded, warnings, redactor } = present()
      return {
        files: loaded.files.map(({ path, dialect }) => ({ path, dialect })),
        config: shownConfig(loaded.config, redactor),
        warnings: warnings.map(redactor.text),
        reload: reloadView(parts, true),
        history: history.events.map(shown),
      }
    },
    last,
    async reload(caller) {
      await recorded(audit, caller, { operation: 'reload_config' }, () => reload.now())
      return last() ?? { at: clock.now(), ok: true, error: null, changes: [] }
    },
    onReload: (listener) => history.onEvent((event) => listener(shown(event))),
  }
}
