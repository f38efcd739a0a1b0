import { useQueryClient } from '@tanstack/react-query'
import { createContext, useContext, useEffect, useState, type ReactNode } from 'react'
import { followLive, keys, type LiveSample, type LiveState } from '@/api'
import { withSample } from './buffer'

interface Live {
  state: LiveState
  samples: LiveSample[]
}

const Context = createContext<Live>({ state: 'connecting', samples: [] })

/** Follows one group while any of its pages is open, so that a change of tabs loses no sample. Its key is the group's id. */
export function LiveProvider({ groupId, children }: { groupId: string; children: ReactNode }) {
  const queries = useQueryClient()
  const [live, setLive] = useState<Live>({ state: 'connecting', samples: [] })
  useEffect(() => {
    const following = new AbortController()
    const listener = {
      onSample: (sample: LiveSample) => setLive((old) => ({ state: 'open', samples: withSample(old.samples, sample) })),
      onState: (state: LiveState) => setLive((old) => ({ ...old, state })),
      onPlacement: () => void queries.invalidateQueries({ queryKey: keys.group(groupId) }),
    }
    void followLive(groupId, listener, following.signal)
    return () => following.abort()
  }, [groupId, queries])
  return <Context.Provider value={live}>{children}</Context.Provider>
}

export function useLive(): Live {
  return useContext(Context)
}
