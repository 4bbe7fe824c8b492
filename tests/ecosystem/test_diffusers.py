"""diffusers: UNet, autoencoder, schedulers, and a step of training."""

import diffusers
import pytest
import torch
from weights import fill, normal


def unet():
    return fill(
        diffusers.UNet2DModel(
            sample_size=8, in_channels=3, out_channels=3, layers_per_block=1, block_out_channels=(16, 32), norm_num_groups=8,
            down_block_types=("DownBlock2D", "AttnDownBlock2D"), up_block_types=("AttnUpBlock2D", "UpBlock2D"),
        )
    )  # fmt: skip


def test_unet_learns(figures, tmp_path):
    model = unet()
    scheduler = diffusers.DDPMScheduler(num_train_timesteps=50)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    images, noise, times = normal("images", 2, 3, 8, 8), normal("noise", 2, 3, 8, 8), torch.tensor([3, 30])
    losses = []
    for _ in range(2):
        predicted = model(scheduler.add_noise(images, noise, times), times).sample
        loss = torch.nn.functional.mse_loss(predicted, noise)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    figures.check("losses", losses)
    model.save_pretrained(tmp_path)
    loaded = diffusers.UNet2DModel.from_pretrained(tmp_path)
    with torch.no_grad():
        figures.check("output", loaded(images, 7).sample)


def test_conditional_unet(figures):
    model = fill(
        diffusers.UNet2DConditionModel(
            sample_size=8, in_channels=4, out_channels=4, layers_per_block=1, block_out_channels=(16, 32), norm_num_groups=8,
            down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"), up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
            cross_attention_dim=16, attention_head_dim=8,
        )
    )  # fmt: skip
    output = model(normal("latents", 2, 4, 8, 8), 5, encoder_hidden_states=normal("text", 2, 5, 16)).sample
    figures.check("output", output)
    output.pow(2).mean().backward()
    figures.check("gradient", model.conv_in.weight.grad)


def test_autoencoder(figures):
    model = fill(
        diffusers.AutoencoderKL(
            in_channels=3, out_channels=3, block_out_channels=(16, 32), latent_channels=4, norm_num_groups=8,
            down_block_types=("DownEncoderBlock2D",) * 2, up_block_types=("UpDecoderBlock2D",) * 2,
        )
    )  # fmt: skip
    images = normal("images", 1, 3, 16, 16)
    posterior = model.encode(images).latent_dist
    figures.check("mean", posterior.mean)
    figures.check("sample", posterior.sample(torch.Generator().manual_seed(0)))
    decoded = model.decode(posterior.mode()).sample
    figures.check("decoded", decoded)
    (decoded - images).pow(2).mean().backward()
    figures.check("gradient", model.encoder.conv_in.weight.grad)


SCHEDULERS = [
    "DDIMScheduler", "DDPMScheduler", "DEISMultistepScheduler", "DPMSolverMultistepScheduler",
    "DPMSolverSinglestepScheduler", "EulerAncestralDiscreteScheduler", "EulerDiscreteScheduler",
    "FlowMatchEulerDiscreteScheduler", "HeunDiscreteScheduler", "LMSDiscreteScheduler", "PNDMScheduler",
    "UniPCMultistepScheduler",
]  # fmt: skip


@pytest.mark.parametrize("name", SCHEDULERS)
def test_scheduler(figures, name):
    scheduler = getattr(diffusers, name)(num_train_timesteps=100)
    scheduler.set_timesteps(6)
    sample = normal("sample", 1, 3, 4, 4)
    generator = torch.Generator().manual_seed(0)
    takes_one = "generator" in scheduler.step.__code__.co_varnames
    for time in scheduler.timesteps:
        scale = getattr(scheduler, "scale_model_input", lambda sample, time: sample)
        options = {"generator": generator} if takes_one else {}
        sample = scheduler.step(scale(sample, time) * 0.1, time, sample, **options).prev_sample
    figures.check("times", scheduler.timesteps.float())
    figures.check("sample", sample)


def test_pipeline(figures):
    pipeline = diffusers.DDIMPipeline(unet=unet(), scheduler=diffusers.DDIMScheduler(num_train_timesteps=50))
    pipeline.set_progress_bar_config(disable=True)
    images = pipeline(batch_size=1, generator=torch.Generator().manual_seed(0), num_inference_steps=4, output_type="np").images
    figures.check("images", images)
