// The waves of sinusoids of one axis, radians per position of each.
import type { PlanInfo } from 'posenc'

export const omegasOf = ({ add }: PlanInfo) => add!.frequencies as number[]
