import { Dialog } from '../parts/dialog.tsx'
import { pages } from '../routing/route.ts'
import { helpShown } from './keyboard.ts'
import { names } from './menu.tsx'
import { letters } from './shortcuts.ts'

const others = [
  [['/'], 'search this page'],
  [['↑', '↓'], 'move between table rows; Enter opens one'],
  [['Esc'], 'leave a field, or close a dialog or panel'],
  [['p'], 'pause or resume live calls'],
  [['?'], 'show this help'],
] as const

export function Help() {
  if (!helpShown.value) return null
  return (
    <Dialog title="Keyboard shortcuts" onClose={() => (helpShown.value = false)}>
      <dl class="facts">
        {pages.map((page) => (
          <Keys key={page} keys={['g', letters[page]]} meaning={`go to ${names[page]}`} />
        ))}
        {others.map(([keys, meaning]) => (
          <Keys key={meaning} keys={keys} meaning={meaning} />
        ))}
      </dl>
      <p class="quiet">
        Everything here is also available through the admin API:{' '}
        <a href="/admin/api/openapi.json" target="_blank" rel="noreferrer">
          OpenAPI description
        </a>
      </p>
      <form method="dialog" class="actions">
        <button type="submit" class="button">
          Close
        </button>
      </form>
    </Dialog>
  )
}

function Keys({ keys, meaning }: { readonly keys: readonly string[]; readonly meaning: string }) {
  return (
    <>
      <dt class="row">
        {keys.map((key) => (
          <kbd key={key}>{key}</kbd>
        ))}
      </dt>
      <dd>{meaning}</dd>
    </>
  )
}
