import type { ConfigEdit } from '../../../src/admin/contract.ts'

type Definition = Readonly<Record<string, unknown>>

/** Whether a definition disables its server. `enabled` is another spelling of `disabled`. */
export const isDisabled = ({ disabled, enabled }: Definition): boolean => disabled === true || enabled === false

/** The edit that disables a server, in the spelling that its definition uses. */
export function disabling(name: string, definition: Definition): ConfigEdit {
  const change = (key: string, value: boolean) => ({ path: ['mcpServers', name, key], value })
  const hasEnabled = definition.enabled !== undefined
  return {
    changes: [
      ...(hasEnabled ? [change('enabled', false)] : []),
      ...(!hasEnabled || definition.disabled !== undefined ? [change('disabled', true)] : []),
    ],
  }
}

/** The edit that removes what disables a server. */
export const enabling = (name: string, definition: Definition): ConfigEdit => ({
  changes: ['disabled', 'enabled']
    .filter((key) => definition[key] !== undefined)
    .map((key) => ({ path: ['mcpServers', name, key] })),
})
