// The truth that faster kernels are tested against: plain loops in double, each value rounded once,
// where it is stored. Arguments and errors are those of apply.h.
#pragma once

#include <string_view>

#include "posenc/apply.h"
#include "src/kernels/arguments.h"
#include "src/kernels/rotation.h"

namespace posenc::detail::reference {

Expected<void> add(const Plan& plan, const Tensor& embedding, const Positions& positions,
                   const Tensor& out);
Expected<void> position_vectors(const Plan& plan, const Positions& positions, const Tensor& out);
Expected<void> add(const Plan& plan, const Tensor& embedding, const Tensor& at, const Tensor& out);
Expected<void> position_vectors(const Plan& plan, const Tensor& at, const Tensor& out);
Expected<void> rotate(const Plan& plan, const Tensor& x, const Positions& positions, Side side,
                      const Tensor& out, Action action = Action::forward);

// The loops behind, for arguments that have been checked.
void add(const Plan& plan, const Positions& positions, const AddArguments& arguments);
void add(const Plan& plan, const RealAddArguments& arguments);
void rotate(const Rotate* rotation, const Positions& positions, Side side, Action action,
            const RotateArguments& arguments);  // null where this side is not rotated

}  // namespace posenc::detail::reference
