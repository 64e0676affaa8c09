import { Button } from '../components/button.tsx'
import { Dialog } from '../components/dialog.tsx'
import { Fact, Facts } from '../components/facts.tsx'
import { helpShown } from './keyboard.ts'
import { pageTitles, visiblePages } from './menu.tsx'
import { pageKeys } from './shortcuts.ts'

const otherShortcuts = [
  [['Ctrl+K'], 'jump to a page, server, tool, agent or call (⌘K on a Mac)'],
  [['/'], 'search this page'],
  [['↑', '↓'], 'move between table rows; Enter opens one'],
  [['Esc'], 'leave a field, or close a dialog or panel'],
  [['p'], 'pause or resume live calls'],
  [['?'], 'show this help'],
] as const

export function ShortcutHelp() {
  if (!helpShown.value) return null
  return (
    <Dialog title="Keyboard shortcuts" onClose={() => (helpShown.value = false)}>
      <Facts>
        {visiblePages().map((page) => (
          <ShortcutRow key={page} keys={['g', pageKeys[page]]} description={`go to ${pageTitles[page]}`} />
        ))}
        {otherShortcuts.map(([keys, description]) => (
          <ShortcutRow key={description} keys={keys} description={description} />
        ))}
      </Facts>
      <p class="quiet">
        Everything here is also available through the admin API:{' '}
        <a href="/admin/api/openapi.json" target="_blank" rel="noreferrer">
          OpenAPI description
        </a>
      </p>
      <form method="dialog" class="actions">
        <Button type="submit">Close</Button>
      </form>
    </Dialog>
  )
}

const ShortcutRow = ({ keys, description }: { readonly keys: readonly string[]; readonly description: string }) => (
  <Fact name={keys.map((key) => [<kbd key={key}>{key}</kbd>, ' '])}>{description}</Fact>
)
