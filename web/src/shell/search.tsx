import { Button } from '../components/button.tsx'
import { Dialog } from '../components/dialog.tsx'
import { lazy } from '../components/lazy.tsx'
import { searchShown } from './keyboard.ts'

const SearchBox = lazy('the search', async () => (await import('./search-box.tsx')).SearchBox)

const isMac = navigator.platform.startsWith('Mac')

export function SearchButton() {
  return (
    <Button
      kind="search-button"
      icon="search"
      aria-label="Search"
      title={`Search (${isMac ? '⌘K' : 'Ctrl+K'})`}
      aria-keyshortcuts="Control+K Meta+K"
      onClick={() => (searchShown.value = true)}
    >
      <span>Search</span>
    </Button>
  )
}

export function SearchDialog() {
  if (!searchShown.value) return null
  return (
    <Dialog title="Search" onClose={() => (searchShown.value = false)}>
      <SearchBox />
    </Dialog>
  )
}
